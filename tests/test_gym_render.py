"""Pictures: shapes, what they show, and that they leave matplotlib's global state alone."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.drawing import new_figure
from wgp_gym.envs import BanditEnv, BanditVectorEnv
from wgp_gym.envs.picture import draw
from wgp_gym.envs.view import view

Variant = tuple[str, dict[str, Any]]
Make = Callable[..., BanditEnv]
Image = NDArray[np.uint8]

LEFT, WIDTH = 10, 80  # where a text's canvas begins and how wide it is
ORANGE = np.array([0xD5, 0x5E, 0x00])


def is_picture(image: Any) -> bool:
    return (
        isinstance(image, np.ndarray) and image.dtype == np.uint8 and image.shape == (450, 800, 3)
    )


@pytest.mark.slow
def test_pictures_change_with_play(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, render_mode="rgb_array", horizon=2, **parameters)
    env.action_space.seed(0)
    env.reset(seed=0)
    before = env.render()
    env.step(env.action_space.sample())
    after = env.render()
    assert is_picture(before)
    assert is_picture(after)
    assert (before != after).any()
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), before)  # a new episode has no plays


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Slow", {"horizon": 12}),
        ("Abrupt", {"dim": 2, "points_per_dim": 5, "horizon": 12}),
        ("LinearContextual", {"horizon": 12}),
        ("Stock", {"horizon": 12}),
    ],
)
def test_what_is_kept_from_picture_to_picture_is_that_of_the_moment(
    make_env: Make, name: str, parameters: dict[str, Any]
) -> None:
    """A frame after others is that of a new figure, but for what covers the axes' edges."""
    env = make_env(f"WGPBandit-{name}-v0", render_mode="rgb_array", noise_std=3.0, **parameters)
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(10):
        env.render()
        env.step(env.action_space.sample())
    figure = new_figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    draw(figure, view(env.dynamics, 0))
    figure.canvas.draw()
    whole = np.asarray(figure.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
    differ = (whole != env.render()).any(axis=2)
    assert differ.mean() < 2e-3


def star(image: Image) -> NDArray[np.float64]:
    """Return the middle of the optimum's orange star; the legend at the right is left out."""
    rows, columns = np.nonzero((np.abs(image[:, :655].astype(int) - ORANGE) < 6).all(axis=2))
    assert len(rows) > 20
    return np.array([columns.mean(), rows.mean()])


@pytest.mark.slow
def test_the_star_is_at_the_optimum(make_env: Make) -> None:
    """Its column goes up linearly with the best arm's place, over a dozen functions."""
    env = make_env("WGPBandit-Abrupt-v0", render_mode="rgb_array")
    places, columns = [], []
    for seed in range(12):
        env.reset(seed=seed)
        places.append(env.optimal_action() / 99)
        columns.append(star(env.render())[0])
    assert np.ptp(places) > 0.5
    assert np.corrcoef(places, columns)[0, 1] > 0.995  # the axis moves with the tick labels


def canvas(text: str) -> NDArray[np.str_]:
    lines = text.split("\n")
    assert len(lines) == 14
    assert all(line[LEFT - 1] == "|" for line in lines[1:-1])
    return np.array([list(line[LEFT:].ljust(WIDTH)) for line in lines[1:-1]])


def columns_of(text: str, sign: str) -> list[int]:
    return sorted(set(np.nonzero(canvas(text) == sign)[1].tolist()))


def column(arm: int, arms: int) -> int:
    return round(arm / (arms - 1) * (WIDTH - 1))


@pytest.mark.parametrize(("name", "arms"), [("Abrupt", 100), ("Stock", 29), ("Parking", 16)])
def test_marks_of_a_text(make_env: Make, name: str, arms: int) -> None:
    env = make_env(f"WGPBandit-{name}-v0", render_mode="ansi", noise_std=0.0)
    env.reset(seed=0)
    best, f = env.optimal_action(), env.expected_rewards()
    text = env.render()
    horizon = env.problem.horizon
    assert text.startswith(f"step 0 of {horizon}, regret so far 0.0\n")
    assert columns_of(text, "*") == [column(best, arms)]
    assert canvas(text)[0, column(best, arms)] == "*"  # the highest of all
    assert columns_of(text, "o") == columns_of(text, "X") == []
    assert len(columns_of(text, "-")) >= min(arms, WIDTH) - 1
    low_row = canvas(text)[-1]
    assert low_row[column(int(f.argmin()), arms)] == "-"
    assert float(text.split("\n")[1].split("|")[0]) == pytest.approx(f.max(), abs=0.006)
    assert float(text.split("\n")[-2].split("|")[0]) == pytest.approx(f.min(), abs=0.006)
    worst = int(f.argmin())
    _, first, *_ = env.step(worst)
    *_, info = env.step(arms // 2)
    reward = info["expected_reward"]
    text = env.render()
    regret = info["cumulative_regret"]
    of = f" from {env.task.arm_names[arms // 2]}" if env.task.arm_names else ""
    title = f"step 2 of {horizon}, last reward {reward:.2f}{of}, regret so far {regret:.1f}"
    assert text.split("\n")[0] == title
    assert columns_of(text, "o") == [column(worst, arms)]
    assert columns_of(text, "X") == [column(arms // 2, arms)]
    assert first == pytest.approx(f.min(), rel=1e-6)
    heights = [float(text.split("\n")[line].split("|")[0]) for line in (1, -2)]
    row = round((heights[0] - reward) / (heights[0] - heights[1]) * 11)
    assert canvas(text)[row, column(arms // 2, arms)] == "X"


@pytest.mark.parametrize(
    "parameters", [{}, {"continuous": True}, {"dim": 2, "points_per_dim": 5}], ids=str
)
def test_a_flat_function_can_be_seen(make_env: Make, parameters: dict[str, Any]) -> None:
    for mode in ("ansi", "rgb_array"):
        env = make_env("WGPBandit-Stationary-v0", norm_bound=0, render_mode=mode, **parameters)
        env.reset(seed=0)
        env.step(env.action_space.sample())
        assert env.render() is not None


@pytest.mark.parametrize("parameters", [{"dim": 3, "points_per_dim": 4}, {"points_per_dim": 2}])
@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_other_dimensions(
    make_env: Make, parameters: dict[str, Any], continuous: bool, mode: str
) -> None:
    env = make_env("WGPBandit-Slow-v0", render_mode=mode, continuous=continuous, **parameters)
    env.reset(seed=0)
    before = env.render()
    env.step(env.action_space.sample())
    assert np.any(before != env.render())


@pytest.mark.parametrize("mode", ["ansi", "rgb_array"])
def test_a_vector_shows_each(make_env: Make, mode: str) -> None:
    vector = gymnasium.make_vec(
        "WGPBandit-Abrupt-v0", 3, vectorization_mode="vector_entry_point", render_mode=mode
    )
    assert isinstance(vector, BanditVectorEnv)
    vector.reset(seed=5)
    vector.step(np.array([1, 50, 99]))
    shown = vector.render()
    assert isinstance(shown, tuple)
    for i, arm in enumerate((1, 50, 99)):
        single = make_env("WGPBandit-Abrupt-v0", render_mode=mode)
        single.reset(seed=5 + i)
        single.step(arm)
        np.testing.assert_array_equal(shown[i], single.render())


def test_without_render_mode_nothing_is_drawn_or_kept(make_env: Make) -> None:
    env = make_env("WGPBandit-Abrupt-v0")
    env.reset(seed=0)
    env.step(0)
    assert env.render() is None
    assert env.dynamics.history is None


@pytest.mark.slow
def test_matplotlibs_global_state_is_left_alone() -> None:
    program = (
        "import sys, gymnasium, wgp_gym\n"
        "env = gymnasium.make('WGPBandit-Abrupt-v0', render_mode='rgb_array')\n"
        "env.reset(seed=0)\n"
        "assert 'matplotlib' not in sys.modules\n"
        "env.step(3); env.render()\n"
        "import matplotlib\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "fresh = matplotlib.rcParamsDefault\n"
        "changed = {k for k, v in matplotlib.rcParams.items() if v != fresh[k]} - {'backend'}\n"
        "assert not changed, changed\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
