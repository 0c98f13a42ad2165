"""What the tests share: every registered id, its variants, a way to make one, and who fits it."""

import functools
import itertools
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
import wgp_gym  # noqa: F401  (registers the ids)
from wgp_agents.algorithms.adaptive.dal_gp_ucb import ChangeDetection
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import AGENTS, ARMS, GP, LINEAR, REST, agent_class, agent_parameters
from wgp_gym.envs import BanditEnv, SyntheticTask
from wgp_gym.kernels import CentredLinear, Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.registration import ENVIRONMENTS

Variant = tuple[str, dict[str, Any]]

TWO_ARMS: dict[str, Any] = {
    "points_per_dim": 2,
    "horizon": 20,
    "change_points": [],
    "noise_std": 0.05,
}

SYNTHETIC_VARIANTS: list[dict[str, Any]] = [
    {"continuous": True},
    {"dim": 2, "points_per_dim": 6},
    {"dim": 2, "points_per_dim": 6, "continuous": True},
]

LEARNERS = [name for name in wgp_agents.names() if not AGENTS[name].reference]
"""The agents that need no environment: a `BanditProblem` will do."""

GAUSSIAN_PROCESSES = [name for name in LEARNERS if issubclass(agent_class(name), GPAgent)]

# More of a task than its id shows, by the id.
OTHER_VARIANTS: dict[str, list[dict[str, Any]]] = {
    "WGPBandit-Abrupt-v0": [
        {"change_points": "random", "change_rate": [0.002, 0.05], "noise_std": [0.05, 1.0]},
        {"change_points": "random", "change_rate": 0.02, "continuous": True},
    ],
    "WGPBandit-Slow-v0": [
        {"kernel": ["se", "matern"], "lengthscale": [0.05, 0.5], "told": "law"},
    ],
    "WGPBandit-Markov-v0": [
        {"continuous": True},
        {"eps": [0.001, 0.1], "noise_std": [0.05, 1.0], "told": "law"},
        {"kernel": "linear", "dim": 2, "points_per_dim": 3, "contextual": True},
    ],
    "WGPBandit-LinearContextual-v0": [
        {"link": "logistic", "dim": 3, "num_arms": 4},
        {"change_points": "random", "change_rate": 0.01, "num_arms": 4},
    ],
    "WGPBandit-ArmsAbrupt-v0": [{"reward": "gaussian"}],
    "WGPBandit-Beam-v0": [{"continuous": True, "antennas": 4, "num_beams": 16}],
    "WGPBandit-Knobs-v0": [
        {"continuous": False, "points_per_dim": 6},
        {"function": "branin", "points_per_dim": 12},
    ],
}

NUMBERS = itertools.count(1)
LONG = 2000  # steps from which on a test that plays whole episodes takes shorter ones


def bare(name: str, **parameters: Any) -> BanditEnv:
    env = gymnasium.make(name, **parameters).unwrapped
    assert isinstance(env, BanditEnv)
    return env


def as_arms(name: str) -> dict[str, Any]:
    """Return the arguments that make the environment of an id one of arms."""
    return {"continuous": False} if bare(name).task.continuous else {}


def variants() -> list[Variant]:
    """List every id made bare, and those that take them with the variants above."""
    found: list[Variant] = []
    for entry in ENVIRONMENTS:
        found.append((entry.id, {}))
        if isinstance(bare(entry.id).task, SyntheticTask):
            found += [(entry.id, parameters) for parameters in SYNTHETIC_VARIANTS]
        found += [(entry.id, parameters) for parameters in OTHER_VARIANTS.get(entry.id, [])]
    return found


def shortened(name: str, parameters: dict[str, Any], horizon: int = 60) -> dict[str, Any]:
    """Give a task of more than `LONG` steps fewer of them."""
    long = bare(name, **parameters).problem.known_horizon("a test") > LONG
    return parameters | ({"horizon": horizon} if long else {})


def readable(variant: Variant) -> str:
    name, parameters = variant
    words = [key if value is True else f"{key}{value}" for key, value in parameters.items()]
    return "-".join([name.removeprefix("WGPBandit-").removesuffix("-v0"), *words])


def quick_or_slow(variant: Variant) -> object:
    """Return a variant as a parameter: those that all synthetic tasks have are quick for one."""
    name, parameters = variant
    slow = parameters in SYNTHETIC_VARIANTS and name != "WGPBandit-Abrupt-v0"
    marks = pytest.mark.slow if slow else ()
    return pytest.param(variant, id=readable(variant), marks=marks)


@pytest.fixture(params=map(quick_or_slow, variants()))
def variant(request: pytest.FixtureRequest) -> Variant:
    """An id and its parameters: every registered id, bare and in its variants."""
    chosen: Variant = request.param
    return chosen


@pytest.fixture(params=[entry.id for entry in ENVIRONMENTS])
def environment_id(request: pytest.FixtureRequest) -> str:
    """Every registered id."""
    return str(request.param)


@pytest.fixture
def make_env() -> Callable[..., BanditEnv]:
    """Make the environment of an id without Gymnasium's wrappers."""
    return bare


def takers(*parameters: str, among: list[str] = LEARNERS) -> list[str]:
    """List the agents that take all these parameters."""
    return [name for name in among if set(parameters) <= set(agent_parameters(name))]


@functools.cache
def specimen(name: str) -> Agent:
    """Return a learner that has learned nothing, to look at."""
    domain = np.linspace(0.0, 1.0, 100)[:, None]
    agent = wgp_agents.make(
        name, BanditProblem(SquaredExponential(0.2), domain, 500, 0.1, 1.0, 1.0)
    )
    agent.reset(0)
    return agent


def gp_specimen(name: str) -> GPAgent:
    """Return a Gaussian-process agent that has learned nothing, to look at."""
    agent = specimen(name)
    assert isinstance(agent, GPAgent)
    return agent


def forced(name: str) -> bool:
    """Tell whether an agent plays some arms in turn, whatever its bound says of them."""
    return isinstance(getattr(specimen(name), "restart_rule", None), ChangeDetection)


def trace(agent: Any, env: Any, seed: int) -> list[NDArray[Any]]:
    """Return what a GP agent plays and thinks in 75 steps of its environment, `(B, ...)` each."""
    observation, _ = env.reset(seed=seed)
    agent.reset(seed)
    rows = []
    for _ in range(75):
        action = agent.act(observation)
        observation, paid, *_ = env.step(action)
        agent.observe(action, paid)
        rows.append(np.atleast_1d(action))
    mean, std = agent.posterior()
    return [np.array(rows).T, np.atleast_2d(mean), np.atleast_2d(std), np.atleast_1d(agent.beta())]


def kinds() -> list[str]:
    """List a learner of each kind: family, base class and surrogate. They share the rest."""
    found: dict[Any, str] = {}
    for name in LEARNERS:
        surrogate = type(getattr(specimen(name), "surrogate", None))
        found.setdefault((AGENTS[name].family, agent_class(name).__base__, surrogate), name)
    return list(found.values())


def by_kind(names: Iterable[str], *others: str) -> list[object]:
    """Return agents as parameters: one of each kind, and others; the rest are marked slow."""
    quick = {*kinds(), *others}
    return [pytest.param(one, marks=() if one in quick else pytest.mark.slow) for one in names]


def field(name: str) -> str:
    """Return the task that an agent's family is made for."""
    return f"WGPBandit-{FIELD.get(AGENTS[name].family, 'Abrupt')}-v0"


@functools.cache
def fits(name: str, env_id: str) -> bool:
    """Tell whether an agent can play a task.

    A given covariance and a linear kernel have no Fourier features; some agents ask for arms
    that stay.
    """
    problem = bare(env_id).problem
    fourier = dict(AGENTS[name].preset).get("features") in ("quadrature", "random")
    stay = AGENTS[name].family == ARMS or name in (
        "d-glm-ucb",
        "sw-glm-ucb",
        "neural-greedy",
        "neural-ucb",
        "neural-ts",
        "in-context",
        "r-perp",
        "master",
        "dal-gp-ucb",
        "opkb",
        "w-dbo",
    )
    spectral = not isinstance(problem.kernel, Empirical | CentredLinear)
    return (spectral or not fourier) and not (stay and problem.contextual)


MET = {
    GP: ("Abrupt", "Slow", "Stock", "LinearContextual"),
    LINEAR: ("LinearAbrupt", "LinearContextual", "Abrupt"),
    ARMS: ("ArmsAbrupt", "ArmsDrift", "Abrupt"),
    REST: ("Abrupt", "Stock", "ArmsDrift"),
}
FIELD = {LINEAR: "LinearAbrupt", ARMS: "ArmsAbrupt"}
EVERYWHERE = ("wgp-ucb", "random", "oracle")


def tasks_of(name: str) -> list[str]:
    """List the ids that the tests of an agent play.

    All pairs would be some 400. Each task meets the agents of `EVERYWHERE`, each agent the tasks
    of its family in `MET`, as far as it can play them.
    """
    every = [entry.id for entry in ENVIRONMENTS]
    family = [f"WGPBandit-{short}-v0" for short in MET[AGENTS[name].family]]
    return [one for one in (every if name in EVERYWHERE else family) if fits(name, one)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take the files from both ends of the alphabet in turn.

    Agents stand at one end, environments, which compile nothing, at the other. Two files of agents
    side by side would compile the same loops at once, before either could keep them for both.
    """
    files = list(dict.fromkeys(item.path for item in items))
    turns = {path: min(2 * i, 2 * (len(files) - i) - 1) for i, path in enumerate(files)}
    items.sort(key=lambda item: turns[item.path])


def pytest_configure(config: pytest.Config) -> None:
    """Let tests pay rewards that no B allows; `test_agents_units.py` looks at the warning."""
    config.addinivalue_line("filterwarnings", "ignore::wgp_agents.core.units.RewardUnits")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server; a test is skipped where none is installed."""
    from postgres_server import server

    pytest.importorskip("psycopg")
    with server() as url:
        yield url


@pytest.fixture
def postgres(postgres_server: str) -> str:
    """Return the URL of a schema of PostgreSQL with nothing in it, as good as a new database."""
    import psycopg

    name = f"test{next(NUMBERS)}"
    with psycopg.connect(postgres_server.replace("+psycopg", "")) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{postgres_server}&options=-csearch_path%3D{name}"


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a new database: a SQLite file, then one of a PostgreSQL server."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'shop.db'}"


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    """Return where a live bandit may be kept: memory, or a new database."""
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'shop.db'}" if request.param == "sqlite" else None


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all results of a small experiment; it is not to be changed."""
    from benchmark_small import SIX_RUNS, play

    folder = tmp_path_factory.mktemp("whole")
    assert play(SIX_RUNS, folder) == []
    return folder


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder."""
    return Path(shutil.copytree(whole, tmp_path / "copy"))
