"""Generators of many episodes at a time are numpy's own, one after the other."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, SeedSequence, default_rng

from wgp_gym.streams import child_generators, entropy_of, integers_below, seeded_generators

# Numbers that have one word of 32 bits where others have two, and the ends of the range.
SHORT = [0, 1, 7, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1]
PAIRS = [[a, b] for a in SHORT for b in SHORT]


def check_same(found: Generator, expected: Generator) -> None:
    assert found.bit_generator.state == expected.bit_generator.state
    for _ in range(2):  # a sequence counts its children
        one, other = found.spawn(2)[1], expected.spawn(2)[1]
        assert one.bit_generator.state == other.bit_generator.state
    np.testing.assert_array_equal(found.standard_normal(3), expected.standard_normal(3))


@pytest.mark.parametrize("count", [1, 3, len(PAIRS)])
@pytest.mark.parametrize("key", [0, 2])
def test_children(count: int, key: int) -> None:
    drawn = default_rng(0).integers(2**63, size=(20, 2)).tolist()
    pairs = (PAIRS + drawn)[-count:]
    found = child_generators(np.array(pairs), key)
    for pair, rng in zip(pairs, found, strict=True):
        check_same(rng, default_rng(SeedSequence(pair, spawn_key=(key,))))
    found = child_generators(np.array(PAIRS), key)
    for pair, rng in zip(PAIRS, found, strict=True):
        check_same(rng, default_rng(SeedSequence(pair, spawn_key=(key,))))


@pytest.mark.parametrize("count", [2, 100])
def test_seeds(count: int) -> None:
    seeds = [*range(count), 2**32 - 1, 2**32, 2**64 + 5, 2**127, 2**128 - 1]
    for seed, rng in zip(seeds, seeded_generators(seeds), strict=True):
        check_same(rng, default_rng(seed))


def test_seeds_of_any_length_or_none() -> None:
    *found, free = seeded_generators([*range(30), 2**128, 2**200, None])
    for seed, rng in zip([*range(30), 2**128, 2**200], found, strict=True):
        check_same(rng, default_rng(seed))
    assert free.random() != seeded_generators([None])[0].random()


def test_entropy() -> None:
    found = [default_rng(seed) for seed in range(5)]
    found.append(Generator(np.random.MT19937(3)))
    expected = copy.deepcopy(found)
    entropy = entropy_of(found)
    for row, one, other in zip(entropy, found, expected, strict=True):
        np.testing.assert_array_equal(row, other.integers(2**63, size=2))
        assert one.random() == other.random()


def test_copies_go_on_alike() -> None:
    for rng in (seeded_generators(range(40))[7], child_generators(np.array(PAIRS), 2)[5]):
        rng.spawn(1)
        copied, loaded = copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))
        state = copy.deepcopy(rng).spawn(1)[0].bit_generator.state
        for other in (copied, loaded):
            assert other.spawn(1)[0].bit_generator.state == state
            assert other.random() == copy.deepcopy(rng).random()


def test_sequences_tell_what_numpys_own_do() -> None:
    for found, expected in (
        (seeded_generators(range(40))[7], default_rng(7)),
        (
            child_generators(np.array(PAIRS), 2)[5],
            default_rng(SeedSequence(PAIRS[5], spawn_key=(2,))),
        ),
    ):
        one: Any = found.bit_generator.seed_seq
        other: Any = expected.bit_generator.seed_seq
        found.spawn(3)
        expected.spawn(3)
        for name in ("entropy", "spawn_key", "pool_size", "n_children_spawned", "state"):
            assert getattr(one, name) == getattr(other, name)
        np.testing.assert_array_equal(one.pool, other.pool)
        one.generate_state(4, np.uint64)[:] = 0  # of the caller
        np.testing.assert_array_equal(
            one.generate_state(4, np.uint64), other.generate_state(4, np.uint64)
        )
        assert not hasattr(one, "no_such_thing")


@pytest.mark.parametrize("n", [1, 2, 100, 99_999, 3 * 2**29, 2**31])
@pytest.mark.parametrize("count", [1, 300, 301])
@pytest.mark.parametrize("before", [0, 1, 2])
def test_integers(n: int, count: int, before: int) -> None:
    """Of 3 x 2^29 a quarter of the draws is refused, of 99,999 one in 60,000.

    After one draw of fewer than 33 bits a generator holds half a word, and after two none.
    """
    found, expected = seeded_generators(range(200)), seeded_generators(range(200))
    for rng in (*found[::3], *expected[::3]):
        rng.integers(10, size=before)
    drawn = integers_below(found, n, count)
    for row, one, other in zip(drawn, found, expected, strict=True):
        np.testing.assert_array_equal(row, other.integers(n, size=count))
        state, known = one.bit_generator.state, other.bit_generator.state
        assert state["state"] == known["state"]
        assert state["has_uint32"] == known["has_uint32"]
        assert one.integers(n) == other.integers(n)
        assert one.random() == other.random()


def test_integers_of_another_generator() -> None:
    found, expected = (Generator(np.random.MT19937(3)) for _ in range(2))
    drawn = integers_below([found], 100, 7)
    np.testing.assert_array_equal(drawn[0], expected.integers(100, size=7))
