"""What the wrappers between an agent and its task change: actions, observations, rewards.

An agent needs to know: it plays through a rescaled box, refuses other changes of actions, reads the
last observation off histories and stacks of frames, no other changed observations, and warns of
changed rewards. A wrapper of the usual kinds is known by its class, any other by the spaces that it
names; what its `step` does beside cannot be known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import (
    AsyncVectorEnv,
    VectorActionWrapper,
    VectorEnv,
    VectorObservationWrapper,
    VectorRewardWrapper,
    VectorWrapper,
)

from wgp_agents.core.access import EnvLike
from wgp_agents.core.frames import frame_of, last_observations, same_numbers
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Observation
from wgp_gym.validation import as_floats, reject
from wgp_gym.wrappers import Frame

__all__ = ["Wrapped", "read_wrappers"]

ACTIONS, OBSERVATIONS, REWARDS = CHANGES = ("actions", "observations", "rewards")
LATE = "arrivals"  # what is paid is the task's own, but may be of earlier plays
SINGLE: tuple[type, ...] = (
    gymnasium.ActionWrapper,
    gymnasium.ObservationWrapper,
    gymnasium.RewardWrapper,
)
BATCHED: tuple[type, ...] = (VectorActionWrapper, VectorObservationWrapper, VectorRewardWrapper)
BY_NAME = {  # these are of none of the six kinds; what repeats an action sums up its rewards
    "AtariPreprocessing": ACTIONS,
    "MaxAndSkipEnv": ACTIONS,
    "MaxAndSkipObservation": ACTIONS,
    "RepeatAction": ACTIONS,
    "StickyActionEnv": ACTIONS,
    "FrameStackObservation": OBSERVATIONS,
    "ChangeNotification": OBSERVATIONS,
    "NormalizeReward": REWARDS,
    "RegretReward": REWARDS,
    "VectorRegretReward": REWARDS,
    "DelayedRewards": LATE,
    "VectorDelayedRewards": LATE,
}
RESCALED = "RescaleAction"
HARMLESS = (  # an agent plays within the box; an observation is flat; its type is looked at
    RESCALED,
    "ClipAction",
    "FlattenObservation",
    "DtypeObservation",
)
FLOATS = (np.dtype(np.float32), np.dtype(np.float64))  # others would take digits away
EDGE = 2  # last places to stay away from the ends of a box where rescaling rounds beyond [0, 1]


@dataclass(frozen=True, eq=False)
class Wrapped:
    """What an agent has to know of the wrappers around its task.

    Attributes:
        observations: The outermost wrapper that changes observations so that the task's own cannot
            be read off them, or "".
        rewards: The outermost wrapper that changes rewards, or "".
        low: The lower ends of the box that [0, 1]^d is rescaled to, `(d,)`; None: it is not.
        high: The upper ends.
        edge: How far actions stay away from both, `(d,)`, so that rounding does not take them out.
        frames: Where wrappers show the last observation, the outermost first.
        shape: The shape of what the outermost wrapper shows of one environment.
        late: The outermost wrapper that pays rewards late, or ""; "" where they are told apart.
    """

    observations: str = ""
    rewards: str = ""
    low: Array | None = None
    high: Array | None = None
    edge: Array | float = 0.0
    frames: tuple[Frame, ...] = ()
    shape: tuple[int, ...] = ()
    late: str = ""

    def outwards(self, actions: Actions) -> Actions:
        """Return actions as the wrapped environment takes them: points `(B, d)` rescaled."""
        if self.low is None or self.high is None:
            return actions
        points = self.low + actions * (self.high - self.low)
        kept = np.clip(points, self.low + self.edge, self.high - self.edge)
        return np.asarray(kept, actions.dtype)

    def inwards(self, action: Any) -> Any:
        """Return actions of the wrapped environment as the task takes them."""
        if self.low is None or self.high is None:
            return action
        rule = f"in [{self.low.min():g}, {self.high.max():g}], as {RESCALED} takes it"
        points = as_floats("action", action, "observe", rule)
        if points.shape[-1:] != self.low.shape:
            return points  # whose shape is refused later
        if not ((points >= self.low) & (points <= self.high)).all():
            reject("action", "observe", rule, action)
        return np.clip((points - self.low) / (self.high - self.low), 0.0, 1.0)

    def bare(self, observation: Observation, places: Array, method: str) -> Observation:
        """Return what the task itself shows, of an observation that a method is given.

        Raises:
            ValueError: If a wrapper changes observations so that this cannot be read off them.
        """
        if self.observations:
            raise ValueError(
                f"{method} reads observations as the task shows them, and {self.observations} "
                "changes them. Take that wrapper off, or make the agent from the task's "
                "`problem` alone and tell it of each play by observe."
            )
        if not self.frames:
            return observation
        return last_observations(observation, self.shape, self.frames, places)


@dataclass(frozen=True)
class Layer:
    """A wrapper, or all wrappers of an environment that only another process can see.

    Attributes:
        name: Its name.
        changes: What it changes.
        box: Of one that rescales actions, the box that they are given in.
        rescale: What it does to an action; None where that cannot be seen.
        frame: Where it shows the last observation; None where that is not known, or all it shows.
    """

    name: str
    changes: frozenset[str] = frozenset()
    box: spaces.Box | None = None
    rescale: Callable[[Any], Any] | None = None
    frame: Frame | None = None


def read_wrappers(source: EnvLike, owner: str) -> Wrapped:
    """Return what the wrappers of an agent's environment change.

    Raises:
        ValueError: If a wrapper plays other actions than those it is given, and that cannot be
            undone.
    """
    if isinstance(source, BanditProblem):
        return Wrapped()
    chains = list(chains_of(source))
    layers = [layer for chain in chains for layer in chain]
    actions, observations, rewards, late = (
        next((layer.name for layer in layers if change in layer.changes), "")
        for change in (*CHANGES, LATE)
    )
    if actions:
        rule = "one that plays the actions it is given: take this wrapper off"
        reject("env", owner, rule, actions)
    frames = [tuple(layer.frame for layer in chain if layer.frame) for chain in chains]
    if not observations and any(one != frames[0] for one in frames):
        observations = next(layer.name for layer in layers if layer.frame)
    shown = Wrapped(
        observations,
        rewards,
        frames=frames[0],
        shape=space_of(source, "observation").shape or (),
        late=late,
    )
    boxes = [next((layer.box for layer in chain if layer.box), None) for chain in chains]
    if any(box != boxes[0] for box in boxes):
        reject("env", owner, "one whose actions are all rescaled alike", RESCALED)
    if boxes[0] is None:
        return shown
    ends = np.stack([boxes[0].low, boxes[0].high]).astype(float)
    edge = EDGE * np.spacing(np.abs(ends).max(axis=0).astype(np.float32)).astype(float)
    if all(reaches_ends(chain, boxes[0]) for chain in chains):
        edge[:] = 0.0
    return replace(shown, low=ends[0], high=ends[1], edge=edge)


def reaches_ends(chain: list[Layer], box: spaces.Box) -> bool:
    """Tell whether the ends of the box that actions are given in are played as points of [0, 1]."""
    for point in (box.low, box.high):
        for layer in chain:
            if layer.box is None:
                continue
            if layer.rescale is None:
                return False
            point = layer.rescale(point)
        if not (point.min() >= 0 and point.max() <= 1):
            return False
    return True


def chains_of(source: Any) -> Iterator[list[Layer]]:
    """Yield the wrappers of each sub-environment, outermost first; of a single one, its own."""
    outer = []
    while (inner := inside(source)) is not None:
        outer.append(layer_of(source, inner))
        source = inner
    yield from (outer + chain for chain in chains_within(source))


def chains_within(source: Any) -> Iterator[list[Layer]]:
    """Yield those of the sub-environments of what is not wrapped itself; else an empty chain."""
    if isinstance(source, AsyncVectorEnv):  # what other processes have is made here once more
        forms = dict(zip(source.call("__str__"), source.env_fns, strict=True))
        for make in forms.values():
            made = make()
            with closing(made):
                yield from chains_of(made)
    elif hasattr(source, "envs"):
        for part in source.envs:
            yield from chains_of(part)
    elif hasattr(source, "env_method"):  # of stable-baselines3, in other processes
        for text in dict.fromkeys(source.env_method("__str__")):
            yield elsewhere(source, text) + strangers(source, text)
    else:
        yield []


def inside(source: Any) -> Any:
    """Return what a wrapper is around; None where it is none."""
    if isinstance(source, gymnasium.Wrapper | VectorWrapper):
        return source.env
    return getattr(source, "venv", None) if hasattr(source, "env_method") else None


def layer_of(wrapper: Any, inner: Any) -> Layer:
    """Return what a wrapper changes."""
    kind, name = type(wrapper), type(wrapper).__name__
    shown, given = space_of(wrapper, "observation"), space_of(wrapper, "action")
    changes = changes_of(kind)
    if name == "VecNormalize":
        flags = {OBSERVATIONS: wrapper.norm_obs, REWARDS: wrapper.norm_reward}
        changes |= {change for change, flag in flags.items() if flag}
    if not is_harmless(kind):
        changes |= {OBSERVATIONS} if shown != space_of(inner, "observation") else set()
        changes |= {ACTIONS} if given != space_of(inner, "action") else set()
    elif shown.dtype not in FLOATS or not same_numbers(shown, space_of(inner, "observation")):
        changes |= {OBSERVATIONS}
    frame = frame_of(wrapper, shown, space_of(inner, "observation"))
    if frame is not None:
        changes -= {OBSERVATIONS}
    if not (name == RESCALED and is_harmless(kind)):
        return Layer(name, frozenset(changes), frame=frame)
    of_one: Any = getattr(wrapper, "wrapper", wrapper)  # a vector one holds a single one
    return Layer(name, frozenset(changes), given, of_one.func)


def space_of(env: Any, of: str) -> Any:
    """Return the space of one sub-environment's "action" or "observation"."""
    return getattr(env, f"single_{of}_space" if isinstance(env, VectorEnv) else f"{of}_space")


def changes_of(kind: type) -> set[str]:
    """Return what wrappers of a class change, as far as the class tells."""
    if is_harmless(kind):
        return set()
    pairs = zip(SINGLE + BATCHED, CHANGES * 2, strict=True)
    found = {change for base, change in pairs if issubclass(kind, base)}
    return found | {BY_NAME[one.__name__] for one in kind.__mro__ if one.__name__ in BY_NAME}


def is_harmless(kind: type) -> bool:
    """Tell whether it is a class of Gymnasium's that agents can do with."""
    return kind.__name__ in HARMLESS and kind.__module__.startswith("gymnasium.")


def elsewhere(vector: Any, text: str) -> list[Layer]:
    """Return the wrappers of a sub-environment in another process.

    It is printed as a text of their names, each in front of the next, as in "<A<B<C>>>".
    """
    shown, given = space_of(vector, "observation"), space_of(vector, "action")
    layers = []
    for name in re.findall(r"<(\w+)", text):
        kind = known(name)
        changes = changes_of(kind) if kind else {BY_NAME[name]} if name in BY_NAME else set()
        if name == "DtypeObservation" and shown.dtype not in FLOATS:
            changes = {OBSERVATIONS}
        if name == RESCALED and not given.is_bounded():  # under a ClipAction its box is not seen
            changes = {ACTIONS}
        layers.append(Layer(name, frozenset(changes), given if name == RESCALED else None))
    return layers


def strangers(vector: Any, text: str) -> list[Layer]:
    """Return the wrappers that `elsewhere` does not know, by their kinds."""
    kinds = [kind for kind in map(known, re.findall(r"<(\w+)", text)) if kind]
    return [
        Layer(base.__name__, frozenset({change}))
        for base, change in zip(SINGLE, CHANGES, strict=True)
        if not any(issubclass(kind, base) for kind in kinds) and any(vector.env_is_wrapped(base))
    ]


def known(name: str) -> type | None:
    """Return the wrapper class of this name that Gymnasium has."""
    kind = getattr(gymnasium.wrappers, name, None)
    return kind if isinstance(kind, type) else None
