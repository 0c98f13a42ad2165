"""Noise that is not Gaussian: its laws against scipy's, its scale, and who may know it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import integrate, stats

import wgp_agents
from wgp_gym.envs import BanditEnv, BanditVectorEnv, RandomTask
from wgp_gym.envs.noise import make_noise

Make = Callable[..., BanditEnv]
Parameters = dict[str, Any]

ABRUPT, MARKOV, STOCK = "WGPBandit-Abrupt-v0", "WGPBandit-Markov-v0", "WGPBandit-Stock-v0"
TABLE, LINEAR = "WGPBandit-Table-v0", "WGPBandit-LinearAbrupt-v0"
CONTEXTUAL, ARMS = "WGPBandit-LinearContextual-v0", "WGPBandit-ArmsAbrupt-v0"
TASKS: list[tuple[str, Parameters]] = [
    (ABRUPT, {}),
    (ABRUPT, {"continuous": True, "num_terms": 5}),
    (MARKOV, {}),
    (STOCK, {}),
    (TABLE, {}),
    (LINEAR, {}),
    (CONTEXTUAL, {"num_arms": 3}),
    (ARMS, {"reward": "gaussian"}),
    ("WGPBandit-Recurring-v0", {}),
    ("WGPBandit-Pricing-v0", {}),
    ("WGPBandit-Beam-v0", {"antennas": 4, "num_beams": 16}),
    ("WGPBandit-Sensors-v0", {"training_steps": 60}),
    ("WGPBandit-LowerBound-v0", {}),
    ("WGPBandit-Knobs-v0", {"period": 4}),
]
STD = 0.3
STUDENT: Parameters = {"noise": "student-t", "degrees_of_freedom": 5.0}
LAPLACE: Parameters = {"noise": "laplace"}
PLACE: Parameters = {"noise": "heteroscedastic"}
OUTLIERS: Parameters = {"noise": "outliers", "outlier_share": 0.1, "outlier_size": 8.0}
OFTEN: Parameters = OUTLIERS | {"outlier_share": 0.5}
LAWS = [STUDENT, LAPLACE, PLACE, OUTLIERS]
P_VALUE = 1e-3  # of each test of a distribution; the seeds are fixed
WRONG = 1e-6  # what the same test says of a normal law of the same deviation


def by_law(law: Any) -> str:
    return str(law["noise"]) if isinstance(law, dict) else str(law)


def make_vector(name: str, batch: int, **parameters: Any) -> BanditVectorEnv:
    env = gymnasium.make_vec(
        name, num_envs=batch, vectorization_mode="vector_entry_point", **parameters
    ).unwrapped
    assert isinstance(env, BanditVectorEnv)
    return env


def noise_of(arm: int = 0, *, batch: int = 20, horizon: int = 500, **law: Any) -> NDArray[Any]:
    """Return what was added to the rewards of one arm, `(T, B)`."""
    given: Parameters = {"noise_std": STD, "horizon": horizon, "norm_bound": 1.0, **law}
    env = make_vector("WGPBandit-Stationary-v0", batch, points_per_dim=11, num_terms=5, **given)
    env.reset(seed=11)
    plays = [env.step(np.full(batch, arm)) for _ in range(horizon)]
    return np.array([reward - info["expected_reward"] for _, reward, _, _, info in plays])


def contaminated(x: NDArray[Any]) -> NDArray[Any]:
    mixed: NDArray[Any] = 0.9 * stats.norm(0, STD).cdf(x) + 0.1 * stats.norm(0, 8 * STD).cdf(x)
    return mixed


CASES: list[tuple[Parameters, Any, float]] = [  # the law, its distribution and its deviation
    (STUDENT, stats.t(5, scale=STD / np.sqrt(5 / 3)).cdf, STD),
    (STUDENT | {"degrees_of_freedom": 12}, stats.t(12, scale=STD / np.sqrt(1.2)).cdf, STD),
    (LAPLACE, stats.laplace(scale=STD / np.sqrt(2)).cdf, STD),
    (OUTLIERS, contaminated, STD * np.sqrt(0.9 + 0.1 * 64)),
]


@pytest.mark.parametrize(("law", "cdf", "std"), CASES, ids=["t5", "t12", "laplace", "outliers"])
def test_distributions(law: Parameters, cdf: Any, std: float) -> None:
    noise = noise_of(**law).ravel()
    assert stats.kstest(noise, cdf).pvalue > P_VALUE
    degrees = law.get("degrees_of_freedom")
    if degrees != 12:  # which is close to the normal law
        assert stats.kstest(noise, stats.norm(0, std).cdf).pvalue < WRONG
    # The variance of a sample's variance is std^4 (kappa - 1) / N, kappa the kurtosis, which is
    # 3 + 6 / (nu - 4) of Student's law, 6 of Laplace's, and 24.2 of these outliers.
    kurtosis = 3 + 6 / (degrees - 4) if degrees else 6 if law is LAPLACE else 24.2
    error = np.sqrt((kurtosis - 1) / noise.size)
    assert abs(noise.var() / std**2 - 1) < 5 * error
    assert abs(noise.mean()) < 4 * std / np.sqrt(noise.size)


def test_the_usual_parameters() -> None:
    assert_same = np.testing.assert_array_equal
    few: Parameters = {"batch": 2, "horizon": 60}
    usual = noise_of(noise="student-t", **few)
    assert_same(usual, noise_of(noise="student-t", degrees_of_freedom=3, **few))
    usual = noise_of(noise="outliers", **few)
    assert_same(usual, noise_of(noise="outliers", outlier_share=0.05, outlier_size=10, **few))
    for gaussian in ("gaussian", None):
        assert_same(noise_of(**few), noise_of(noise=gaussian, **few))


@pytest.mark.parametrize("arm", [0, 3, 5, 10])
def test_the_deviation_grows_with_the_place(arm: int) -> None:
    noise, normal = noise_of(arm, **PLACE), noise_of(arm)
    std = STD * (0.5 + arm / 10)
    assert stats.kstest(noise.ravel(), stats.norm(0, std).cdf).pvalue > P_VALUE
    np.testing.assert_allclose(noise, normal * (0.5 + arm / 10), atol=1e-6)


def test_places_are_those_that_were_played(make_env: Make) -> None:
    """On a box and where arms change, too; the law is that of the first coordinate."""
    places: list[tuple[str, Parameters]] = [
        (ABRUPT, {"continuous": True, "dim": 2, "points_per_dim": 5}),
        (CONTEXTUAL, {"num_arms": 3, "dim": 3}),
    ]
    for name, parameters in places:
        parameters |= {"horizon": 40, "noise_std": STD}
        env, plain = make_env(name, **parameters, **PLACE), make_env(name, **parameters)
        env.reset(seed=3)
        plain.reset(seed=3)
        env.action_space.seed(1)
        for _ in range(40):
            action = env.action_space.sample()
            seen, reward, _, _, info = env.step(action)
            _, usual, _, _, same = plain.step(action)
            assert info["expected_reward"] == same["expected_reward"]
            expected = (usual - info["expected_reward"]) * (0.5 + seen[2])
            np.testing.assert_allclose(reward - info["expected_reward"], expected, atol=1e-6)


def test_all_are_made_of_the_same_normal_numbers() -> None:
    normal = noise_of(horizon=300, batch=3)
    for law in (STUDENT, LAPLACE, OUTLIERS):
        np.testing.assert_array_equal(
            np.sign(noise_of(horizon=300, batch=3, **law)), np.sign(normal)
        )
    ratio = noise_of(horizon=300, batch=3, **OUTLIERS) / normal
    odd = np.abs(ratio - 8) < 0.01
    np.testing.assert_allclose(ratio[~odd], 1, atol=0.01)
    assert stats.binomtest(int(odd.sum()), odd.size, 0.1).pvalue > P_VALUE
    whole = noise_of(horizon=40, batch=2, noise="outliers", outlier_share=1, outlier_size=3)
    np.testing.assert_allclose(whole, 3 * noise_of(horizon=40, batch=2), atol=1e-6)


@pytest.mark.parametrize("law", LAWS, ids=by_law)
def test_the_noise_depends_on_the_seed_and_the_step_alone(law: Parameters) -> None:
    short, long = noise_of(2, horizon=30, batch=3, **law), noise_of(2, horizon=60, batch=4, **law)
    np.testing.assert_array_equal(short, long[:30, :3])
    if law is not PLACE:
        np.testing.assert_allclose(noise_of(9, horizon=30, batch=3, **law), short, atol=1e-6)
    steps = long.T
    assert len(np.unique(steps)) == steps.size
    assert (
        abs(stats.spearmanr(np.abs(steps[:, 1:]).ravel(), np.abs(steps[:, :-1]).ravel())[0]) < 0.25
    )


@pytest.mark.parametrize("law", [STUDENT, LAPLACE, PLACE, OFTEN], ids=by_law)
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task[0].split("-")[1])
def test_every_task_takes_them(
    make_env: Make, task: tuple[str, Parameters], law: Parameters
) -> None:
    name, parameters = task
    parameters = {"horizon": 12, "noise_std": STD, **parameters}
    single, plain = make_env(name, **parameters, **law), make_env(name, **parameters)
    vector = make_vector(name, 3, **parameters, **law)
    vector.action_space.seed(2)
    actions = [vector.action_space.sample() for _ in range(25)]  # two episodes
    found: list[Any] = [vector.reset(seed=4), *(vector.step(action) for action in actions)]
    observation, info = single.reset(seed=6)
    _, same = plain.reset(seed=6)
    alone: list[Any] = [(observation, info)]
    for action in actions:
        alone.append(single.reset() if alone[-1][-1]["t"] == 12 else single.step(action[2]))
    for one, many in zip(alone, found, strict=True):
        np.testing.assert_array_equal(one[0], many[0][2])
        for key, value in one[-1].items():
            np.testing.assert_array_equal(many[-1][key][2], value, key)
    assert info["optimal_reward"] == same["optimal_reward"]  # the functions are the same
    usual = [plain.step(action[2]) for action in actions[:12]]
    for one, other in zip(alone[1:13], usual, strict=True):
        assert one[-1]["expected_reward"] == other[-1]["expected_reward"]
    assert any(one[1] != other[1] for one, other in zip(alone[1:13], usual, strict=True))


SCALES = [(STUDENT, None), (LAPLACE, None), (PLACE, 1.5), (OUTLIERS, 8.0)]


@pytest.mark.parametrize(("law", "factor"), SCALES, ids=by_law)
def test_the_scale_that_is_told(make_env: Make, law: Parameters, factor: float | None) -> None:
    env, vector = (
        make_env(ABRUPT, noise_std=STD, **law),
        make_vector(ABRUPT, 2, noise_std=STD, **law),
    )
    for _ in range(2):
        if factor is None:
            assert env.problem.noise_scale is vector.problem.noise_scale is None
        else:
            assert env.problem.noise_scale == factor * STD
            np.testing.assert_array_equal(vector.problem.noise_scale, np.full(2, factor * STD))
        assert vector.problem.batch_size == 2
        env.reset(seed=1)
        vector.reset(seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.001, 0.1, 0.9])
def test_the_scale_of_outliers_is_the_smallest(share: float) -> None:
    """By the moment function E e^{z eps}, from the density."""
    noise = make_noise("gaussian", 1.0, "X", noise="outliers", outlier_share=share, outlier_size=4)
    scale = noise.scale
    assert scale is not None

    def log_moment(z: float) -> float:
        def weighed(x: float) -> float:
            density = (1 - share) * stats.norm.pdf(x) + share * stats.norm(0, 4).pdf(x)
            return float(np.exp(z * x - 8 * z * z) * density)

        middle = 16 * z
        return float(
            np.log(integrate.quad(weighed, middle - 60, middle + 60, points=[z, middle])[0])
        )

    # Over e^{8 z^2}, what R = 4 allows.
    assert all(log_moment(z) <= 1e-9 for z in (0.01, 0.3, 1.0, 3.0))
    assert log_moment(3.0) > 0.5 * 9 * ((0.95 * scale) ** 2 - scale**2)
    assert make_noise("gaussian", 1.0, "X", noise="outliers", outlier_share=0).scale == 1.0


WORLDS: list[tuple[str, Parameters]] = [
    (ABRUPT, {"lengthscale": [0.1, 0.4], "change_points": "random", "change_rate": 0.1}),
    (LINEAR, {}),
    (ARMS, {"reward": "gaussian"}),
]


@pytest.mark.parametrize(("law", "factor"), SCALES, ids=by_law)
@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world[0].split("-")[1])
def test_a_deviation_that_is_drawn(
    make_env: Make, world: tuple[str, Parameters], law: Parameters, factor: float | None
) -> None:
    name, parameters = world
    parameters = {"horizon": 30, **parameters}
    env = make_env(name, noise_std=[0.05, 1.0], **parameters, **law)
    assert isinstance(env.task, RandomTask)
    assert env.problem.noise_scale is None
    deviations = set()
    for seed in range(3):
        env.reset(seed=seed)
        (episode,) = env.dynamics.episodes
        std = episode.noise_scale
        assert isinstance(std, float)
        deviations.add(std)
        told = env.problem.noise_scale
        assert told == (None if factor is None else factor * std)
        fixed = make_env(name, noise_std=std, **parameters, **law)
        fixed.reset(seed=seed)
        assert fixed.problem.noise_scale == told
        env.action_space.seed(1)
        for _ in range(30):
            action = env.action_space.sample()
            np.testing.assert_equal(fixed.step(action), env.step(action))
    assert len(deviations) == 3
    hidden = make_env(name, noise_std=[0.05, 1.0], told="law", **parameters, **law)
    hidden.reset(seed=0)
    assert hidden.problem.noise_scale is None


def test_a_vector_of_drawn_deviations() -> None:
    vector = make_vector(ABRUPT, 4, horizon=5, noise_std=[0.05, 1.0], **OUTLIERS)
    vector.reset(seed=1)
    own = np.array([episode.noise_scale for episode in vector.dynamics.episodes])
    np.testing.assert_array_equal(vector.problem.noise_scale, 8 * own)


def test_one_episode_by_options(make_env: Make) -> None:
    env, fixed = make_env(ABRUPT, **LAPLACE), make_env(ABRUPT, noise_std=2.0, **LAPLACE)
    env.reset(seed=3, options={"noise_std": 2.0})
    fixed.reset(seed=3)
    np.testing.assert_equal(env.step(5), fixed.step(5))


@pytest.mark.parametrize(
    ("law", "match"),
    [
        ({"noise": "student"}, "'noise' .* one of 'gaussian', 'student-t'.*did you mean"),
        ({"noise": 3}, "'noise' .* one of 'gaussian', 'student-t'"),
        ({"degrees_of_freedom": 3}, "'degrees_of_freedom' .* None for the noise 'gaussian'"),
        (LAPLACE | {"degrees_of_freedom": 3}, "'degrees_of_freedom' .* None for the noise 'lap"),
        (STUDENT | {"outlier_share": 0.1}, "'outlier_share' .* None for the noise 'student-t'"),
        (PLACE | {"outlier_size": 2}, "'outlier_size' .* None for the noise 'heteroscedastic'"),
        (STUDENT | {"degrees_of_freedom": 2}, r"'degrees_of_freedom' .* float in \(2, 1e\+06\]"),
        (STUDENT | {"degrees_of_freedom": 1e7}, r"'degrees_of_freedom' .* float in \(2, 1e\+06\]"),
        (OUTLIERS | {"outlier_share": 1.1}, r"'outlier_share' .* float in \[0, 1\]"),
        (OUTLIERS | {"outlier_size": 0.5}, r"'outlier_size' .* float in \[1, 1e\+06\]"),
        (OUTLIERS | {"noise_std": 1e30}, r"'noise_std' .* float in \[0, 1\.25e\+29\]"),
        (PLACE | {"noise_std": 1e30}, r"'noise_std' .* float in \[0, 6\.66667e\+29\]"),
        (STUDENT | {"noise_std": -1.0}, r"'noise_std' .* float in \[0, 1e\+30\]"),
    ],
)
def test_refused(law: Parameters, match: str) -> None:
    for name in (ABRUPT, MARKOV, STOCK, LINEAR):
        with pytest.raises(ValueError, match=match):
            gymnasium.make(name, **law)


def test_rewards_of_0_or_1_have_no_other_noise() -> None:
    laws: list[Parameters] = [LAPLACE, {"noise": "gaussian"}, {"outlier_size": 3.0}]
    tasks: list[tuple[str, Parameters]] = [(ARMS, {}), (LINEAR, {"link": "logistic"})]
    for law in laws:
        for name, more in tasks:
            with pytest.raises(ValueError, match="must be None where rewards are 0 or 1"):
                gymnasium.make(name, **more, **law)


def test_unknown_keywords() -> None:
    for name in (ABRUPT, MARKOV, LINEAR, ARMS, STOCK):
        with pytest.raises(TypeError, match=r"unexpected keyword argument 'noise_law'"):
            gymnasium.make(name, noise_law="laplace")


def test_agents_without_a_scale() -> None:
    env = gymnasium.make(ABRUPT, horizon=40, **STUDENT)
    with pytest.raises(ValueError, match=r"'noise_scale' .* the scale R .* give it 'noise_scale'"):
        wgp_agents.make("wgp-ucb", env)
    found = {}
    for name, parameters in {"wgp-ucb": {"noise_scale": 0.1}, "adaptive-wgp-ucb": {}}.items():
        agent = wgp_agents.make(name, env, **parameters)
        observation, info = env.reset(seed=1)
        agent.reset(1)
        for _ in range(40):
            action = agent.act(observation)
            observation, reward, _, _, info = env.step(action)
            agent.observe(action, reward)
        found[name] = info["cumulative_regret"]
    assert all(regret < 200 for regret in found.values())
