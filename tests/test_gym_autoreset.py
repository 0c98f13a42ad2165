"""What comes after step T in a batch: Gymnasium's three rules; options of a reset."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode

import wgp_agents
from wgp_agents.benchmark.rollout import rollout

ABRUPT = "WGPBandit-Abrupt-v0"
HORIZON = 4


def native(mode: Any, **parameters: Any) -> Any:
    return gymnasium.make_vec(ABRUPT, 3, autoreset_mode=mode, **parameters)


def stacked(result: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return a step whose last observations are one array, which can be compared."""
    *first, info = result
    if "final_obs" in info:
        info["final_obs"] = np.stack(info["final_obs"])
    return (*first, info)


@pytest.mark.parametrize("kind", [{}, {"continuous": True}], ids=str)
@pytest.mark.parametrize("mode", [*AutoresetMode, "SameStep"], ids=str)
def test_the_rules_are_those_of_gymnasiums_own(mode: Any, kind: dict[str, Any]) -> None:
    env = native(mode, horizon=HORIZON, **kind)
    sync = gymnasium.make_vec(
        ABRUPT,
        3,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": mode},
        horizon=HORIZON,
        **kind,
    )
    assert env.metadata["autoreset_mode"] == sync.metadata["autoreset_mode"]
    np.testing.assert_equal(env.reset(seed=5), sync.reset(seed=5))
    env.action_space.seed(0)
    for step in range(2 * HORIZON + 3):
        if mode == AutoresetMode.DISABLED and step and step % HORIZON == 0:
            everyone = np.ones(3, bool)
            found = env.reset(options={"reset_mask": everyone})
            np.testing.assert_equal(found, sync.reset(options={"reset_mask": everyone}))
        action = env.action_space.sample()
        np.testing.assert_equal(stacked(env.step(action)), stacked(sync.step(action)))


def test_without_autoreset_there_is_no_step_after_the_last() -> None:
    env = native("Disabled", horizon=1)
    env.reset(seed=0)
    assert env.step([0, 0, 0])[3].all()
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step([0, 0, 0])


def test_the_default_is_the_next_step_and_other_environments_keep_theirs() -> None:
    native("SameStep")
    made = gymnasium.make_vec(ABRUPT, 2)
    assert made.metadata["autoreset_mode"] == AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("mode", ["same_step", None, 1, np.array(["SameStep"] * 2)])
def test_rules_that_there_are_not(mode: Any) -> None:
    with pytest.raises(ValueError, match=r"'autoreset_mode' .* 'NextStep', 'SameStep', 'Disabled'"):
        native(mode)


def test_a_rollout_has_the_regret_of_its_last_step() -> None:
    played: list[dict[str, Any]] = []
    for mode in (AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP):
        env = native(mode, horizon=HORIZON)
        played.append(rollout(wgp_agents.make("random", env), env, seed=1).steps)
    np.testing.assert_equal(played[0], played[1])


PARTIAL = [[True, False, True], [False] * 3, [True] * 2, [1, 1, 1], True, None, [[True] * 3], "all"]


@pytest.mark.parametrize("mask", PARTIAL, ids=str)
def test_episodes_in_lockstep_are_reset_together(mask: Any) -> None:
    env = native("Disabled")
    env.reset(seed=0)
    env.step([0, 0, 0])
    for given in (mask, np.array(mask)):
        with pytest.raises(ValueError, match=r"'reset_mask' .* all sub-environments.*lockstep"):
            env.reset(options={"reset_mask": given})
    assert env.step([0, 0, 0])[4]["t"].tolist() == [2, 2, 2]  # nothing was reset


@pytest.mark.parametrize("options", [{"bogus": 3}, {"rest_mask": 1}, [1], "seed", 5])
def test_options_that_there_are_not(options: Any) -> None:
    for env in (gymnasium.make(ABRUPT), native("NextStep")):
        with pytest.raises(ValueError, match="options"):
            env.reset(seed=0, options=options)
        env.reset(seed=0, options={})
