"""Episodes that are played twice; changes told beforehand; and views of drawn arms."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.wrappers import HistoryObservation, VectorHistoryObservation

Make = Callable[..., BanditEnv]

ABRUPT, SLOW, CONTEXTUAL = (
    f"WGPBandit-Linear{name}-v0" for name in ("Abrupt", "Slow", "Contextual")
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (ABRUPT, {}),
        (SLOW, {}),
        (SLOW, {"contextual": True, "dim": 3}),
        (CONTEXTUAL, {"link": "logistic"}),
        ("WGPBandit-ArmsDrift-v0", {}),
        ("WGPBandit-Slow-v0", {}),
        ("WGPBandit-Abrupt-v0", {"continuous": True}),
    ],
    ids=str,
)
def test_forks_and_changes(name: str, kind: dict[str, Any]) -> None:
    made = gymnasium.make_vec(
        name, 3, vectorization_mode="vector_entry_point", horizon=8, render_mode="ansi", **kind
    )
    assert isinstance(made, BanditVectorEnv)
    made.reset(seed=2)
    made.action_space.seed(0)
    actions = [made.action_space.sample() for _ in range(8)]
    first, changes = [], []
    for action in actions:
        changes.append(made.function_changes())
        assert changes[-1].shape == (3,)
        changed = made.step(action)[4]["changed"]
        np.testing.assert_array_equal(changes[-1], changed)
        first.append(made.render())
    assert not made.function_changes().any()  # after the end
    shown = made.render()
    made.reset(seed=2)
    again = made.fork()
    assert (again.t, again.history, again.batch) == (0, None, 3)
    assert not again.observation()[:, : 3 + made.problem.domain.shape[1]].any()
    for t, action in enumerate(actions):
        made.fork().step(made.action_space.sample())  # moves nothing here
        later = made.fork()
        observation, reward, _, _, info = made.step(action)
        again.step(action)
        later.step(action)
        np.testing.assert_array_equal(later.reward, reward)
        assert later.t == t + 1
        np.testing.assert_array_equal(again.observation(), observation)
        np.testing.assert_array_equal(again.reward, reward)
        np.testing.assert_array_equal(again.info()["regret"], info["regret"])
        assert made.render() == first[t]
    assert made.render() == shown


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
@pytest.mark.parametrize("dim", [2, 3])
def test_pictures_of_few_drawn_arms(make_env: Make, mode: str, dim: int) -> None:
    env = make_env(CONTEXTUAL, num_arms=2, dim=dim, render_mode=mode)
    env.reset(seed=0)
    before = env.render()
    env.step(1)
    assert np.any(before != env.render())


def test_histories_are_refused() -> None:
    match = "'env' parameter of {}HistoryObservation must be an environment whose arms stay"
    with pytest.raises(ValueError, match=match.format("")):
        HistoryObservation(gymnasium.make(CONTEXTUAL), 2)
    many: Any = gymnasium.make_vec(CONTEXTUAL, 2, vectorization_mode="vector_entry_point")
    with pytest.raises(ValueError, match=match.format("Vector")):
        VectorHistoryObservation(many, 2)
