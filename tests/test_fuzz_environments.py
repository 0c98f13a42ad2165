"""Random keywords and actions for every environment: a documented error, or a sound episode."""

import inspect
from decimal import Decimal
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wgp_agents.core.keywords import keywords
from wgp_gym.envs.laws import is_random, law_keywords
from wgp_gym.envs.task import load_task
from wgp_gym.registration import ENVIRONMENTS

pytestmark = pytest.mark.slow

LONGEST_MESSAGE = 1000

FLOATS: list[Any] = [
    *(0, 0.5, 1.0, 2.5, -1.0, 3, 1e-6, 1e-9, 1e-12, 5e-324, 1e-300, 1e-163, 1e-100, 1e-30),
    *(1e6, 1e9, 1e15, 1e30, 1e31, 1e160, 1e308, float("inf"), float("nan"), np.float32(0.3)),
    *(np.float16(1e-4), np.float64(2.0), 10**400, 2**63),
]
INTS: list[Any] = [1, 2, 3, 5, 9, np.int64(4), 0, -1, 10**5, 10**9, 10**11, 2**63, 10**400]
OTHERS: list[Any] = [
    *(None, True, np.True_, "1", b"1.0", 1j, Decimal(1), Fraction(1, 2), object(), {}, [], "se"),
    *(np.ma.masked, np.array(1.0), np.array([1, 2]), np.array(["se", "se"]), ["se"], [[1], [1, 2]]),
    *(np.ma.masked_equal([1.0, -9.0], -9.0), np.zeros(0), "x" * 200, [3] * 1000, ("a",)),
]
CHOICES: dict[str, list[Any]] = {
    "kernel": [
        *("se", "matern", "linear", "modified-matern", "empirical"),
        *(["se", "matern"], ["linear", "matern", "linear"], ["se", "nothing"], ("se", 3)),
    ],
    "reward": ["gaussian", "bernoulli", "value", "complement", "price", "return"],
    "link": ["identity", "logistic"],
    "demand": ["linear", "logit", "exponential"],
    "orders": ["gaussian", "poisson", "lognormal"],
    "nu": [0.5, 1.5, 2.5, np.float32(1.5)],
    "table": ["parking", "dow29", "/nowhere.csv"],
    "prices": ["dow29", "parking"],
    "continuous": [True, False],
    "contextual": [True, False],
    "change_points": [
        "random",
        "random",
        [],
        [2],
        [2, 4],
        [3, 3],
        [10**400],
        np.array([2, 5]),
        [2.0],
        (3,),
    ],
    "theta": [[[1e-300, 0]], [[1, 0], [0, 1]], [[0, 0, 1], [1, 0, 0]], [[1e-200, 1]], [[0.5, 0]]],
    "means": [[[0.5, 1e-300]], [[0.1, 0.9], [0.9, 0.1]], [[0, 0]], np.eye(2), [[0.1] * 1001]],
    "phases": [[0.0, 1.0], [1e300, 0.0], np.zeros(3), [0, float("nan")]],
    "horizon": [1, 2, 5, 9, 12],
    "noise_std": [
        *FLOATS,
        [0.1, 1.0],
        [0.1, 1e30],
        (1e-300, 1e-100),
        [1.0, 0.1],
        np.array([0.2, 3.0]),
    ],
    "lengthscale": [*FLOATS, [0.1, 1.0], [1e-9, 1e9], (0.1, 1e10), [[0.1], [0.2]]],
    "eps": [*FLOATS, [0.1, 1.0], [1e-300, 1e-9], [0.5, 2.0]],
    "change_rate": [None, 0, 0.2, 1, [0.01, 0.5], [1e-300, 1.0], [0.1, 2.0]],
    "told": ["drawn", "law", "nothing"],
    "noise": ["gaussian", "student-t", "laplace", "heteroscedastic", "outliers", None, "none"],
    "degrees_of_freedom": [None, 2, 2.0001, 3, 1e6],
    "outlier_share": [None, 0, 0.2, 1],
    "outlier_size": [None, 1, 10, 1e6],
    "dim": [1, 2, 3],
    "points_per_dim": [2, 3, 7],
    "num_terms": [1, 4, 30],
    "num_arms": [2, 3, 6],
    "kernel_days": [3, 400],
}
SMALL: dict[str, Any] = {"horizon": 12, "points_per_dim": 5, "num_arms": 4, "num_terms": 9}
SMALL |= {"num_prices": 5, "antennas": 2, "num_beams": 7, "num_sensors": 4, "training_steps": 9}


def accepted(task: str) -> list[str]:
    """List the keywords of a task."""
    made: Any = load_task(task)
    laws = law_keywords(getattr(made, "drawable", {}))
    return [*keywords(made.__init__ if inspect.isclass(made) else made), *laws]


def values(name: str) -> st.SearchStrategy[Any]:
    """Draw a value for a keyword: mostly one that might do, else a hostile one."""
    likely = CHOICES.get(name, FLOATS)
    hostile = st.sampled_from([*FLOATS, *INTS, *OTHERS])
    return st.one_of(*[st.sampled_from(likely)] * 3, hostile)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Draw an id and some of the keywords that its task takes."""
    entry = draw(st.sampled_from(ENVIRONMENTS))
    names = accepted(entry.task)
    few = st.lists(st.sampled_from(names), max_size=4, unique=True)
    chosen = {name: draw(values(name)) for name in draw(few)}
    if "change_rate" in names and is_random(chosen.get("change_points")):
        chosen.setdefault("change_rate", draw(values("change_rate")))
    small = {name: value for name, value in SMALL.items() if name in names}
    return entry.id, small | chosen


ACTIONS: list[Any] = [*FLOATS, *INTS, *OTHERS, [0.5], [0.5, 0.5], [0, 0, 0], [[0.1], [0.2], [0.3]]]


def refused(action: Any, *arguments: Any, **keywords: Any) -> Any:
    """Return what a call returns, or None where it raises an error that is documented."""
    try:
        return action(*arguments, **keywords)
    except (ValueError, FileNotFoundError) as error:
        message = str(error)
    assert 0 < len(message) < LONGEST_MESSAGE
    return None


def check_step(env: Any, result: tuple[Any, ...]) -> None:
    observation, reward, terminated, truncated, info = result
    assert env.observation_space.contains(observation)
    assert np.isfinite(reward).all()
    assert not np.any(terminated)
    assert truncated is not None
    for name, value in info.items():
        assert np.isfinite(value).all(), name
    assert np.all(info["regret"] >= 0)


def check_asked(problem: Any, asked: dict[str, Any], spent: Any) -> None:
    """Check that an episode has the norms and the variation that were asked for."""
    if asked.get("variation_budget") is not None:
        np.testing.assert_allclose(problem.variation_budget, float(asked["variation_budget"]), 1e-6)
    if asked.get("norm_bound") is not None:
        np.testing.assert_allclose(problem.norm_bound, float(asked["norm_bound"]), 1e-6)
    if asked.get("told") != "law":  # else of B_T no more than what was asked for, if it was
        np.testing.assert_array_equal(spent, problem.variation_budget)


def play(env: Any, actions: list[Any], asked: dict[str, Any]) -> None:
    """Play an episode to its end, with actions that are sane and some that may not be."""
    begun = refused(env.reset, seed=3)
    if begun is None:
        return
    assert env.observation_space.contains(begun[0])
    problem = env.unwrapped.problem
    env.action_space.seed(0)
    for t in range(min(problem.horizon, 20)):
        if t < len(actions) and (result := refused(env.step, actions[t])) is not None:
            check_step(env, result)
            if np.all(result[3]):
                break
        try:
            result = env.step(env.action_space.sample())
        except ResetNeeded:
            break
        check_step(env, result)
        if np.all(result[3]):
            check_asked(problem, asked, result[4]["variation"])
            break
    assert np.isfinite(env.unwrapped.expected_rewards()).all()


FUZZ = settings(
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=2500,
    suppress_health_check=list(HealthCheck),
)


@FUZZ
@given(call=calls(), actions=st.lists(st.sampled_from(ACTIONS), max_size=3))
def test_an_environment_is_refused_or_sound(call: tuple[str, Any], actions: list[Any]) -> None:
    name, keywords = call
    env = refused(gymnasium.make, name, **keywords)
    if env is None:
        return
    env.spec.to_json()
    play(env, actions, keywords)


@FUZZ
@given(
    call=calls(),
    batch=st.sampled_from([1, 2, 3, np.int64(2), *[2] * 8, 0, 10**9, 10**400, "2", None, True]),
    actions=st.lists(st.sampled_from(ACTIONS), max_size=3),
)
def test_a_vector_environment_is_refused_or_sound(
    call: tuple[str, Any], batch: Any, actions: list[Any]
) -> None:
    name, keywords = call
    env = refused(gymnasium.make_vec, name, batch, **keywords)
    if env is None:
        return
    env.spec.to_json()
    play(env, actions, keywords)
