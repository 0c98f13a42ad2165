"""Arrays that are kept: neither who gave them nor who reads them can change them."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.arrays import frozen, kept
from wgp_gym.envs import BanditEnv, BanditVectorEnv, SyntheticTask
from wgp_gym.envs.table import TableTask
from wgp_gym.features import exact_features
from wgp_gym.fourier import FourierFeatures
from wgp_gym.kernels import Empirical, Linear, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.rkhs import DomainKernel
from wgp_gym.schedules import Schedule, piecewise_constant

Array = NDArray[Any]


def through_pickle(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


COPIES: list[Callable[[Any], Any]] = [lambda one: one, copy.copy, copy.deepcopy, through_pickle]


def read_only(array: Array) -> bool:
    return not array.flags.writeable


def test_a_frozen_array_is_nobody_elses() -> None:
    mine = np.arange(3.0)
    copied = frozen(mine)
    mine[0] = 9.0
    assert copied.tolist() == [0.0, 1.0, 2.0]
    assert read_only(copied)
    assert frozen(copied) is copied  # nothing to copy
    view = mine.view()
    view.setflags(write=False)
    assert frozen(view) is not view  # its owner can still write to it


def test_a_kept_parameter_is_that_of_its_time() -> None:
    array, names = np.zeros(2), [[1.0], [2.0]]
    found = kept(array), kept(names)
    array[:], names[0][0] = 7.0, 7.0
    assert (found[0].tolist(), found[1]) == ([0.0, 0.0], [[1.0], [2.0]])
    assert kept("known") == "known"


def three_arms() -> dict[str, Any]:
    return {
        "domain": np.array([[0.0], [0.5], [1.0]]),
        "noise_scale": np.array([0.1, 0.2]),
        "norm_bound": np.array([1.0, 2.0]),
        "variation_budget": np.array([3.0, 4.0]),
    }


@pytest.mark.parametrize("copied", COPIES)
def test_a_problem_keeps_what_it_was_made_of(copied: Callable[[Any], Any]) -> None:
    given = three_arms()
    problem = BanditProblem(kernel=SquaredExponential(), horizon=9, **given)
    again = copied(problem)
    for name, array in given.items():
        array *= 0.25
        for one in (problem, again):
            np.testing.assert_array_equal(getattr(one, name), three_arms()[name])
            assert read_only(getattr(one, name))


def test_a_problem_does_not_copy_a_domain_again() -> None:
    env = BanditEnv(SyntheticTask("abrupt"))
    first = env.problem.domain
    env.reset(seed=0)
    assert env.problem.domain is first


@pytest.mark.parametrize("copied", COPIES)
def test_what_others_keep(copied: Callable[[Any], Any]) -> None:
    mine = np.eye(3)
    row = np.array([0.0, 0.5, 1.0])
    kernel = copied(Empirical(mine))
    waves = copied(FourierFeatures(mine, row))
    schedule = copied(Schedule(np.arange(3), row, np.arange(3), 4))
    rows = DomainKernel(SquaredExponential(), row[:, None])
    features = copied(exact_features(SquaredExponential(), np.array([[0.0], [1.0]])))
    mine[:], row[:] = 7.0, 7.0
    for kept_array, expected in (
        (kernel.matrix, np.eye(3)),
        (waves.frequencies, np.eye(3)),
        (waves.weights, [0.0, 0.5, 1.0]),
        (schedule.weight, [0.0, 0.5, 1.0]),
        (rows.domain, [[0.0], [0.5], [1.0]]),
    ):
        np.testing.assert_array_equal(kept_array, expected)
        assert read_only(kept_array)
    assert read_only(features.table)
    assert read_only(features.pivots)


LISTS: list[tuple[str, dict[str, Any]]] = [
    ("WGPBandit-Abrupt-v0", {"change_points": np.array([2, 4])}),
    ("WGPBandit-LinearAbrupt-v0", {"change_points": [3], "theta": np.array([[1.0, 0], [0, 1.0]])}),
    (
        "WGPBandit-ArmsAbrupt-v0",
        {"change_points": [3], "means": 0.9 * np.eye(2)},
    ),
    ("WGPBandit-ArmsDrift-v0", {"phases": np.array([0.0, 3.0])}),
]


@pytest.mark.parametrize(("name", "given"), LISTS, ids=lambda one: str(one)[:30])
def test_a_task_keeps_what_it_was_made_of(name: str, given: dict[str, Any]) -> None:
    twin = gymnasium.make(name, horizon=6, **copy.deepcopy(given))
    mine = copy.deepcopy(given)
    env = gymnasium.make(name, horizon=6, **mine)
    for value in mine.values():
        value[:] = value[::-1] if isinstance(value, list) else np.zeros_like(value)
    env.reset(seed=1)
    twin.reset(seed=1)
    for _ in range(6):
        assert env.step(1)[4] == twin.step(1)[4]


def test_a_table_keeps_what_it_was_made_of() -> None:
    rewards = np.array([[0.0, 1.0], [1.0, 0.0]])
    env = BanditEnv(TableTask(rewards, np.eye(2)))
    rewards[:] = 7.0
    env.reset(seed=0)
    assert env.expected_rewards().tolist() == [0.0, 1.0]


@pytest.mark.parametrize("name", ["WGPBandit-LinearContextual-v0", "WGPBandit-Slow-v0"])
def test_what_is_handed_out_is_no_way_in(name: str) -> None:
    env: Any = gymnasium.make_vec(name, 2, horizon=5)
    assert isinstance(env, BanditVectorEnv)
    env.reset(seed=0)
    fork = env.fork()
    assert read_only(fork.arms())
    assert read_only(env.problem.domain)
    truth = env.expected_rewards()
    env.expected_rewards()[:] = 7.0
    np.testing.assert_array_equal(env.expected_rewards(), truth)


def test_jumps_keep_no_list() -> None:
    steps = [3, 5]
    schedule = piecewise_constant(9, steps)
    steps[0] = 9
    assert schedule.index.tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 2]


def test_batches_of_problems() -> None:
    domain = np.array([[0.0], [1.0]])
    given: dict[str, Any] = {"kernel": Linear(), "domain": domain, "horizon": 9, "noise_scale": 0.1}
    for wrong in ([], [1.0, 2.0, 3.0], [[1.0, 2.0]]):
        with pytest.raises(ValueError, match=r"'norm_bound' .* one for each episode"):
            BanditProblem(**given | {"noise_scale": [0.1, 0.2], "norm_bound": wrong})
    assert BanditProblem(**given | {"norm_bound": [1, 2]}).batch_size == 2
    with pytest.raises(ValueError, match=r"'problems' .* at least one"):
        BanditProblem.stack([])
