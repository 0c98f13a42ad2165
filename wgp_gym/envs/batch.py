"""Batches of episodes: made of single ones, and of one another."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from wgp_gym.envs.episode import BY_POSITION, FIELDS, NO_CENTRE, Episode
from wgp_gym.kernels import Kernel
from wgp_gym.types import AnyArray

__all__ = ["join", "stack"]


def stack(episodes: Sequence[Episode]) -> Episode:
    """Return a batch of single episodes; what all of them share is not copied. See `join`."""
    most = max(len(episode.centres) for episode in episodes)
    knots = max(len(episode.values) for episode in episodes)
    episodes = [with_knots(with_centres(episode, most), knots) for episode in episodes]
    first = episodes[0]

    def _column(name: str) -> AnyArray:
        fields = [getattr(episode, name) for episode in episodes]
        if all(field is fields[0] for field in fields):
            return np.broadcast_to(fields[0], (len(fields), *np.shape(fields[0])))
        if name in BY_POSITION:
            return np.stack(fields, axis=1).swapaxes(0, 1)
        return np.stack(fields)

    columns = {name: _column(name) for name in (*FIELDS, "centres")}
    return Episode(
        **columns,
        norm_bound=np.array([episode.norm_bound for episode in episodes]),
        variation_budget=np.array([episode.variation_budget for episode in episodes]),
        arms=None if first.arms is None else _column("arms"),
        knots=None if first.knots is None else _column("knots"),
        noise_scale=None if first.noise_scale is None else _column("noise_scale"),
        kernels=None if first.kernels is None else all_kernels(episodes),
        available=None if first.available is None else _column("available"),
        parameters=None if first.parameters is None else _column("parameters"),
    )


def all_kernels(episodes: Iterable[Episode]) -> tuple[Kernel, ...]:
    """Return the kernels of episodes that have their own."""
    return tuple(itertools.chain.from_iterable(one.kernels or () for one in episodes))


def with_knots(episode: Episode, count: int) -> Episode:
    """Return a single episode with so many knots, of which the last are zeros."""
    more = count - len(episode.values)
    if not more:
        return episode
    rows = ((0, more), (0, 0))
    coefficients, values = np.pad(episode.coefficients, rows), np.pad(episode.values, rows)
    return replace(episode, values=values, coefficients=coefficients)


def with_centres(episode: Episode, count: int) -> Episode:
    """Return a single episode with so many centres, of which the last are none."""
    more = count - len(episode.centres)
    if not more:
        return episode
    centres = np.pad(episode.centres, (0, more), constant_values=NO_CENTRE)
    coefficients = np.pad(episode.coefficients, ((0, 0), (0, more)))
    return replace(episode, centres=centres, coefficients=coefficients)


def join(blocks: Sequence[Episode]) -> Episode:
    """Return the batch that blocks make one after the other, its arrays read-only.

    What is looked up at one position for all episodes is contiguous there. A single block that
    is like this already, or whose episodes share what they have, is not copied.
    """

    def _column(name: str) -> AnyArray:
        axis = int(name in BY_POSITION)
        fields = [np.asarray(getattr(block, name)).swapaxes(0, axis) for block in blocks]
        joined = fields[0]
        if len(fields) > 1 or (joined.strides[axis] and not joined.flags.c_contiguous):
            count = sum(field.shape[axis] for field in fields)
            shape = (*joined.shape[:axis], count, *joined.shape[axis + 1 :])
            joined = np.concatenate(fields, axis=axis, out=np.empty(shape, joined.dtype))
        joined.setflags(write=False)  # views of it are handed out
        return joined.swapaxes(0, axis)

    columns = {name: _column(name) for name in (*FIELDS, "norm_bound", "variation_budget")}
    first = blocks[0]
    return Episode(
        **columns,
        centres=first.centres if first.centres.ndim == 1 else _column("centres"),
        arms=None if first.arms is None else _column("arms"),
        knots=None if first.knots is None else _column("knots"),
        noise_scale=None if first.noise_scale is None else _column("noise_scale"),
        kernels=None if first.kernels is None else all_kernels(blocks),
        available=None if first.available is None else _column("available"),
        parameters=None if first.parameters is None else _column("parameters"),
    )
