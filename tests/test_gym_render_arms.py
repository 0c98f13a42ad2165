"""What pictures show of arms: each where it stands, and past plays only where they have a place."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wgp_gym.envs import BanditEnv
from wgp_gym.envs.picture import draw
from wgp_gym.envs.view import view

Make = Callable[..., BanditEnv]

CONTEXTUAL, ABRUPT = "WGPBandit-LinearContextual-v0", "WGPBandit-LinearAbrupt-v0"
CIRCLE_STEPS = (3, 11, 30, 3)


def played(
    make_env: Make, name: str, **parameters: Any
) -> tuple[BanditEnv, list[Any], list[float]]:
    """Play four steps; return the environment, the places in the observations and the rewards."""
    env = make_env(name, render_mode="ansi", **parameters)
    env.reset(seed=0)
    d = env.problem.domain.shape[1]
    places, rewards = [], []
    for arm in CIRCLE_STEPS:
        observation, reward, *_ = env.step(arm)
        places.append(observation[2 : 2 + d])
        rewards.append(reward)
    return env, places, rewards


def axes_of(env: BanditEnv) -> Axes:
    return draw(Figure(), view(env.dynamics, 0))


def labels_of(axes: Axes) -> set[str]:
    return set(axes.get_legend_handles_labels()[1])


def dots(axes: Axes, label: str) -> Any:
    """Return where the dots of a scatter stand, `(t, 2)`."""
    (found,) = (one for one in axes.collections if one.get_label() == label)
    return found.get_offsets()


@pytest.mark.parametrize("name", [ABRUPT, CONTEXTUAL])
def test_on_the_plane_every_play_is_where_it_was(make_env: Make, name: str) -> None:
    env, places, _ = played(make_env, name)
    axes = axes_of(env)
    np.testing.assert_allclose(dots(axes, "actions, newest brightest"), places, atol=1e-6)


def test_drawn_arms_are_dots_in_the_colour_of_their_rewards(make_env: Make) -> None:
    env = played(make_env, CONTEXTUAL)[0]
    axes, arms, rewards = axes_of(env), env.dynamics.arms()[0], env.expected_rewards()
    (cloud,) = (one for one in axes.collections if np.shape(one.get_offsets()) == arms.shape)
    np.testing.assert_allclose(np.asarray(cloud.get_offsets(), float), arms)
    np.testing.assert_allclose(np.asarray(cloud.get_array()), rewards)
    (star,) = (line for line in axes.lines if line.get_label() == "its optimum")
    shown = np.ravel(np.asarray(star.get_data(), float))
    np.testing.assert_allclose(shown, arms[rewards.argmax()])


def test_the_circle_is_shown_whole(make_env: Make) -> None:
    axes = axes_of(played(make_env, ABRUPT)[0])
    for low, high in (axes.get_xlim(), axes.get_ylim()):
        assert low < -0.02
        assert high > 1.02


def test_arms_that_stay_are_shown_by_number_with_their_rewards(make_env: Make) -> None:
    env, _, rewards = played(make_env, ABRUPT, dim=3)
    axes = axes_of(env)
    expected = np.stack([CIRCLE_STEPS, rewards], axis=1)
    np.testing.assert_allclose(dots(axes, "rewards, newest darkest"), expected)
    (arms,) = (line for line in axes.lines if line.get_label() == "expected reward")
    assert (arms.get_linestyle(), arms.get_marker()) == ("None", "o")  # their order says nothing
    shown = np.asarray(arms.get_ydata(), float)
    np.testing.assert_allclose(shown, env.expected_rewards())


@pytest.mark.parametrize("dim", [3, 5])
def test_plays_of_arms_that_are_gone_are_not_shown(make_env: Make, dim: int) -> None:
    """The axis counts the arms of now: earlier ones have no place on it."""
    env, _, rewards = played(make_env, CONTEXTUAL, dim=dim)
    axes = axes_of(env)
    assert labels_of(axes) == {"expected reward", "its optimum"}
    assert not axes.collections
    assert f"last reward {rewards[-1]:.2f}" in axes.get_title()


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("name", [ABRUPT, CONTEXTUAL])
def test_plays_in_a_text(make_env: Make, name: str, dim: int) -> None:
    env, _, _ = played(make_env, name, dim=dim, noise_std=40.0)  # far from the arms' own marks
    *canvas, key = [line[10:] for line in env.render().split("\n")[1:]]
    found = {line.index(sign) for line in canvas for sign in "oX" if sign in line}
    expected = {round(arm / 49 * 79) for arm in CIRCLE_STEPS} if name == ABRUPT else set()
    assert found == expected
    assert ("rewards so far" in key) == (name == ABRUPT)


def test_a_text_marks_arms_and_no_line(make_env: Make) -> None:
    env = make_env(ABRUPT, render_mode="ansi", dim=3, num_arms=5)
    env.reset(seed=0)
    assert sum(line[10:].count("-") for line in env.render().split("\n")[1:-1]) == 4  # and a star


@pytest.mark.parametrize(("num_arms", "shown"), [(10, 10), (30, 30), (31, 16), (100, 25)])
def test_labels_of_arms_are_thinned(make_env: Make, num_arms: int, shown: int) -> None:
    env = make_env("WGPBandit-ArmsAbrupt-v0", render_mode="ansi", num_arms=num_arms)
    env.reset(seed=0)
    ticks = axes_of(env).get_xticks()
    texts = [label.get_text() for label in axes_of(env).get_xticklabels()]
    assert len(ticks) == shown
    numbers = np.rint(np.array(ticks) * (num_arms - 1)).astype(int)
    assert texts == [f"arm {i}" for i in numbers]


@pytest.mark.parametrize("dim", [2, 3])
def test_the_logistic_picture_shows_expected_rewards(make_env: Make, dim: int) -> None:
    env = make_env(ABRUPT, render_mode="ansi", link="logistic", dim=dim)
    env.reset(seed=0)
    figure = Figure()
    axes = draw(figure, view(env.dynamics, 0))
    words = labels_of(axes) | {one.get_ylabel() for one in figure.axes}
    assert "expected reward" in words
    assert not any("f_t" in word for word in words)
    assert "-: expected reward" in env.render()


def test_a_box_names_its_axis(make_env: Make) -> None:
    for continuous, name in ((True, "nearest point of the grid"), (False, "arm")):
        parameters = {"dim": 3, "points_per_dim": 3, "continuous": continuous}
        env = make_env("WGPBandit-Stationary-v0", render_mode="ansi", **parameters)
        env.reset(seed=0)
        assert axes_of(env).get_xlabel() == name


def test_names_of_arms_are_no_formulas(make_env: Make, tmp_path: Path) -> None:
    rows = ["t,$\\frac$,B$,C", *(f"{t},{t},{2 * t},{-t}" for t in range(5))]
    (tmp_path / "table.csv").write_text("\n".join(rows))
    table = {"table": tmp_path / "table.csv", "render_mode": "rgb_array"}
    env = make_env("WGPBandit-Table-v0", **table)
    env.reset(seed=0)
    env.step(0)
    assert np.asarray(env.render()).std() > 0
