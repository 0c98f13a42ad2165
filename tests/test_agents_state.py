"""What an agent has learned, written down and read: it goes on as if it had never stopped."""

from __future__ import annotations

import copy
import io
import json
import pickle
import subprocess
import sys
import zipfile
from collections import deque
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from conftest import LEARNERS, by_kind, field, fits
from numpy.typing import NDArray
from small_model import SMALL, TASK, Touch, small_model

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Prediction, Surrogate
from wgp_agents.gp.surrogates.weighted import RestartSurrogate, WindowSurrogate
from wgp_agents.registry import AGENTS, ARMS, agent_parameters
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

STEPS, EARLIER = 40, 7
PROBLEM = BanditProblem(
    SquaredExponential(0.2),
    np.linspace(0, 1, 30)[:, None],
    200,
    0.1,
    2.0,
    3.0,
    reward_range=(-2, 2),
)
OPTIONS: dict[str, Any] = {  # with the defaults little is forgotten in 80 steps
    "window": 30,
    "restart_period": 33,
    "block_length": 9,
    "discounts": (0.8, 1.0),
    "hidden": 8,
}
BOX: dict[str, Any] = {"continuous": True}
every_agent = pytest.mark.parametrize("name", by_kind(wgp_agents.names(), "random", "oracle"))


def options(name: str) -> dict[str, Any]:
    return {key: value for key, value in OPTIONS.items() if key in agent_parameters(name)}


def environment(env_id: str, batch: int | None, **kwargs: Any) -> Any:
    if batch is None:
        return gymnasium.make(env_id, horizon=120, **kwargs)
    mode = "vector_entry_point"
    return gymnasium.make_vec(
        env_id, num_envs=batch, vectorization_mode=mode, horizon=120, **kwargs
    )


def played(agent: Agent, env: Any, observation: Any, steps: int) -> tuple[list[NDArray[Any]], Any]:
    """Return what an agent plays and thinks, and the last observation."""
    told: list[Any] = []
    for _ in range(steps):
        action = agent.act(observation)
        observation, reward, *_ = env.step(action)
        agent.observe(action, reward)
        told.append(action)
    told += getattr(agent, "posterior", tuple)()
    told.append(getattr(agent, "beta", int)())
    return [np.asarray(one) for one in told], observation


def same(one: list[NDArray[Any]], other: list[NDArray[Any]]) -> None:
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def grounds(name: str) -> list[tuple[str, int | None, dict[str, Any], int]]:
    """List where an agent is asked to go on: task, B, arguments, steps."""
    found: list[tuple[str, int | None, dict[str, Any], int]] = [(field(name), 3, {}, STEPS)]
    if AGENTS[name].family != ARMS and "glm" not in name:
        found.append(("WGPBandit-Abrupt-v0", None, BOX, 9))
    if fits(name, "WGPBandit-LinearContextual-v0"):
        found.append(("WGPBandit-LinearContextual-v0", None, {}, STEPS))
    return found


@every_agent
def test_another_goes_on_as_the_agent_would(name: str) -> None:
    for env_id, batch, kwargs, steps in grounds(name):
        env = environment(env_id, batch, **kwargs)
        observation, _ = env.reset(seed=3)
        agent = wgp_agents.make(name, env, **options(name))
        agent.reset(5)
        _, observation = played(agent, env, observation, steps)
        state = agent.state_dict()
        before = {key: np.array(value) for key, value in state.items()}
        # The other has another seed and past; an oracle reads the truth of what it plays.
        truth = AGENTS[name].reference
        other_env = copy.deepcopy(env) if truth else environment(env_id, batch, **kwargs)
        other = wgp_agents.make(name, other_env, **options(name))
        if truth:
            other.reset(99)
        else:
            other_env.reset(seed=8)
            other.reset(99)
            played(other, other_env, other_env.reset(seed=8)[0], EARLIER)
            other_env.reset(seed=3)  # B and B_T, for those that start anew
        other.load_state_dict(state)
        twin_env, twin = (other_env, other) if truth else (copy.deepcopy(env), other)
        apart, _ = played(agent, env, observation, steps)
        same(apart, played(twin, twin_env, observation, steps)[0])
        if batch:  # some of them start anew, and the others go on
            for one in (agent, twin):
                one.reset(8, learners=[True, False, True])
            ahead = played(agent, env, observation, EARLIER)[0]
            same(ahead, played(twin, twin_env, observation, EARLIER)[0])
        for key, value in before.items():  # the table is apart from both agents
            np.testing.assert_array_equal(state[key], value)


def driven(agent: Agent, steps: int, seed: int = 0) -> list[Any]:
    """Return the actions of an agent on made-up rewards."""
    rewards = np.random.default_rng(seed).uniform(-1, 1, steps)
    actions = []
    for reward in rewards:
        actions.append(agent.act())
        agent.observe(actions[-1], float(reward))
    return actions


def learned(name: str, **parameters: Any) -> Agent:
    agent = wgp_agents.make(name, PROBLEM, **{**options(name), **parameters})
    agent.reset(5)
    driven(agent, STEPS)
    return agent


ELSEWHERE = """
import json, sys, numpy as np, wgp_agents
from test_agents_state import LEARNERS, PROBLEM, driven, options
from pathlib import Path
told = {}
for name in LEARNERS:
    agent = wgp_agents.make(name, PROBLEM, **options(name))
    agent.load(Path(sys.argv[1]) / f"{name}.npz")
    told[name] = driven(agent, 20, 1)
print(json.dumps(told))
"""


@pytest.mark.slow
def test_a_file_is_gone_on_from_in_another_process(tmp_path: Path) -> None:
    agents = {name: learned(name) for name in LEARNERS}
    for name, agent in agents.items():
        agent.save(tmp_path / f"{name}.npz")
        with np.load(tmp_path / f"{name}.npz", allow_pickle=False) as stored:
            assert all(stored[key].dtype.kind in "biuf" for key in stored.files)
    expected = {name: driven(agent, 20, 1) for name, agent in agents.items()}
    command = [sys.executable, "-c", ELSEWHERE, str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    assert json.loads(done.stdout) == expected
    assert {path.suffix for path in tmp_path.iterdir()} == {".npz"}  # and nothing half written


@pytest.mark.parametrize("algo", ["ppo", "recurrent-ppo"])
def test_a_trained_policy_goes_on(algo: str, tmp_path: Path) -> None:
    path = small_model(algo, tmp_path)
    env: Any = gymnasium.make(TASK, **(SMALL | {"horizon": 60}))
    observation, _ = env.reset(seed=3)
    agent, other = (wgp_agents.make(algo, env, model=str(path)) for _ in range(2))
    agent.reset(5)
    _, observation = played(agent, env, observation, 20)
    other.load_state_dict(agent.state_dict())
    other_env = copy.deepcopy(env)
    same(played(agent, env, None, 20)[0], played(other, other_env, None, 20)[0])
    with torch.no_grad():
        next(agent._model.policy.parameters()).add_(1.0)  # type: ignore[attr-defined]
    notes = {"deterministic": False, "reward_scale": other._history.reward_scale}  # type: ignore[attr-defined]
    another = wgp_agents.make(algo, env, model=agent._model, **notes)  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=r"made otherwise, as to agent\._weights"):
        another.load_state_dict(other.state_dict())


@pytest.mark.parametrize("name", ["wgp-ucb", "sw-gp-ucb", "master", "adaptive-wgp-ucb"])
def test_files_are_small_and_the_same_for_the_same_state(name: str, tmp_path: Path) -> None:
    agent = learned(name)
    agent.save(tmp_path / "one.npz")
    agent.save(tmp_path / "two.npz")
    data = (tmp_path / "one.npz").read_bytes()
    assert data == (tmp_path / "two.npz").read_bytes()
    state = agent.state_dict()
    assert len(data) < sum(getattr(one, "nbytes", 0) for one in state.values()) + 500 * len(state)


def refused(agent: Agent, state: Any, match: str) -> None:
    """Check that a state is refused and changes nothing."""
    before, ahead = agent.state_dict(), copy.deepcopy(agent)
    with pytest.raises(ValueError, match=match):
        agent.load_state_dict(state)
    assert pickle.dumps(agent.state_dict()) == pickle.dumps(before)
    assert driven(copy.deepcopy(agent), 5) == driven(ahead, 5)


def test_the_state_of_another_agent_is_refused() -> None:
    agent = learned("wgp-ucb", discount=0.9)
    state = agent.state_dict()
    refused(agent, state | {"format": 1}, "must be of format 3. Got format 1, one that version")
    refused(agent, state | {"format": None}, "must be of format 3")
    refused(
        agent, learned("igp-ucb").state_dict(), "must be that of a WGPUCB. Got that of a 'IGPUCB'"
    )
    refused(agent, {}, "must be of format 3")
    refused(agent, [1], "parameter of WGPUCB.load_state_dict must be what state_dict returned")
    other = learned("wgp-ucb", discount=0.91).state_dict()
    refused(agent, other, "same parameters, on the same problem. Got one made otherwise")
    for problem in (
        replace(PROBLEM, domain=PROBLEM.domain[:-1]),
        replace(PROBLEM, kernel=SquaredExponential(0.21)),
        replace(PROBLEM, noise_scale=np.full(2, 0.1)),
    ):
        elsewhere = wgp_agents.make("wgp-ucb", problem, discount=0.9)
        elsewhere.reset(0)
        refused(agent, elsewhere.state_dict(), "made otherwise, as to agent")
    episode = wgp_agents.make("wgp-ucb", replace(PROBLEM, norm_bound=1.0), discount=0.9)
    episode.load_state_dict(state)  # B is that of the episode, not of the agent
    assert episode.beta() == agent.beta()  # type: ignore[attr-defined]


def twice(n: Any, *, factor: float = 2.0) -> Any:
    return factor + 0.0 * n


def bounded(limit: float) -> Any:
    return lambda n: limit + 0.0 * n


def formula(share: float, form: str = "deng") -> Any:
    def found(norm_bound: Any, noise_scale: Any, regularization: Any, delta: Any, gain: Any) -> Any:
        return share * (norm_bound + gain if form == "deng" else gain)

    return found


def leftmost(rows: Any) -> Any:
    return np.zeros(len(rows), int)


def second(rows: Any) -> Any:
    return np.ones(len(rows), int)


class Line:
    """A width that is a method."""

    def __init__(self, height: float) -> None:
        self.height = height

    def at(self, n: Any) -> Any:
        return self.height + 0.0 * n


def ramp(n: Any) -> Any:
    """Return a width whose docstring is another one."""
    return 1.0 + 0.1 * n


straight = ramp


def ramp(n: Any) -> Any:  # type: ignore[no-redef]
    """Return the same, on another line."""
    return 1.0 + 0.1 * n


FUNCTIONS: list[tuple[str, str, Any, Any]] = [
    ("wgp-ucb", "confidence_width", lambda n: 0.1 + 0 * n, lambda n: 9.0 + 0 * n),
    ("wgp-ucb", "confidence_width", lambda n: 1.0 + n, lambda n: 1.0 * n),
    ("wgp-ucb", "confidence_width", lambda n: np.sqrt(n), lambda n: np.cbrt(n)),
    ("wgp-ucb", "confidence_width", np.sqrt, np.cbrt),
    ("wgp-ucb", "confidence_width", bounded(0.1), bounded(9.0)),
    ("wgp-ucb", "confidence_width", partial(twice, factor=1.0), partial(twice, factor=3.0)),
    ("wgp-ucb", "confidence_width", Line(0.1).at, Line(9.0).at),
    ("wgp-ucb", "confidence_width", twice, ramp),
    ("policy", "policy", leftmost, second),
]


def kept(name: str, key: str, function: Any) -> Agent:
    """Return an agent that takes a function, after a reset."""
    agent = wgp_agents.make(name, PROBLEM, **{key: function})
    agent.reset(0)
    return agent


@pytest.mark.parametrize(("name", "key", "mine", "other"), FUNCTIONS)
def test_the_state_of_an_agent_with_another_function_is_refused(
    name: str, key: str, mine: Any, other: Any
) -> None:
    state = kept(name, key, mine).state_dict()
    refused(kept(name, key, other), state, "same parameters, on the same problem. Got one made")
    kept(name, key, copy.deepcopy(mine)).load_state_dict(state)


def test_another_form_of_the_width_is_refused() -> None:
    agents = [
        GPAgent(PROBLEM, surrogate=RestartSurrogate, width_form=formula(*given))
        for given in ((0.5,), (0.5,), (0.6,), (0.5, "plain"))
    ]
    for agent in agents:
        agent.reset(0)
    state = agents[0].state_dict()
    agents[1].load_state_dict(state)
    for agent in agents[2:]:
        refused(agent, state, "same parameters, on the same problem. Got one made otherwise")


def test_the_same_function_written_elsewhere_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    state = kept("wgp-ucb", "confidence_width", straight).state_dict()
    kept("wgp-ucb", "confidence_width", ramp).load_state_dict(state)
    monkeypatch.setattr(ramp, "__module__", "__main__")  # as in a script
    kept("wgp-ucb", "confidence_width", ramp).load_state_dict(state)


def test_a_state_of_another_version_of_an_agent_is_refused_as_such(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agent = learned("wgp-ucb")
    state = agent.state_dict()
    monkeypatch.setattr(type(agent), "_form", 2)
    refused(
        agent, state, "a WGPUCB, form 2. Got that of a 'WGPUCB', another version of this agent: one"
    )
    agent.load_state_dict(agent.state_dict())
    later = agent.state_dict()
    monkeypatch.setattr(type(agent), "_form", 1)
    refused(agent, later, "a WGPUCB. Got that of a 'WGPUCB, form 2', another version of this agent")


@pytest.mark.slow
def test_a_state_that_was_changed_is_refused() -> None:
    agent = learned("sw-gp-ucb")
    state = agent.state_dict()
    path = "agent.surrogate._posterior.arrays.mean"
    mean = state[path]
    assert isinstance(mean, np.ndarray)
    bad: list[Any] = [mean[:, 1:].astype(np.float32), mean[0], mean.astype(object), None, 1.0]
    bad += ["@part WGPUCB", "@text x", "@same agent", "@same agent._unanswered", "@list 99"]
    for value in bad:
        refused(agent, state | {path: value}, "must be that of an agent made alike")
    refused(agent, {k: v for k, v in state.items() if k != path}, "arrays.mean is missing")
    refused(agent, state | {path: mean.tolist()}, "must be a table of arrays, numbers and texts")
    refused(agent, state | {path: 1.0, "version": "9.1"}, r"version '9\.1' wrote, and this is ")
    for used in (257, -1, 0.5):
        refused(agent, state | {"agent._streams._used": used}, "made alike")
    refused(agent, state | {"agent.evil": 1}, "agent.evil is nothing that this agent has")
    refused(agent, state | {"agent.surrogate": "@same agent.width"}, "made alike")
    refused(agent, state | {"agent.surrogate": "@part Popen"}, "agent.surrogate is a Popen")


LEADS_OUT = {  # what compiled loops take for an index, or the length of a store
    "w-dbo": "surrogate.kept.held",
    "tv-gp-ucb": "surrogate.kept.filters",
    "adaptive-wgp-ucb": "bank.kept.chosen",
    "ui-gp-ucb": "surrogate._level.start",
    "sw-gp-ucb": "surrogate._actions",
    "wgp-ucb": "_record.kept.arm",
    "master": "_blocks.order",
    "bob-wgp-ucb": "restart_rule.candidate",
    "opkb": "replays.arrays.order",
    "sw-ucb": "statistics._arms",
    "adswitch": "state.size",
    "glr-ucb": "statistics._detector.size",
}


@pytest.mark.parametrize(("name", "path"), LEADS_OUT.items())
def test_a_state_that_leads_out_of_an_array_is_refused(name: str, path: str) -> None:
    agent = learned(name)
    state = agent.state_dict()
    key = f"agent.{path}"
    array = state[key]
    if isinstance(array, str):  # the same array stands under another name first
        key = array.removeprefix("@same ")
        array = state[key]
    assert isinstance(array, np.ndarray)
    for bad in (-1, 10**9):
        refused(agent, state | {key: np.full_like(array, bad)}, r"made alike: \w+\.\w+ in \[0, ")


def test_stores_of_unlike_size_are_refused() -> None:
    for name, path in (("sw-ucb", "statistics._rewards"), ("adswitch", "state.sums")):
        agent = learned(name)
        state = agent.state_dict()
        array = state[f"agent.{path}"]
        assert isinstance(array, np.ndarray)
        refused(agent, state | {f"agent.{path}": array[:, :-1]}, "stores of unlike size")


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    agent, path, canary = learned("wgp-ucb"), tmp_path / "a.npz", tmp_path / "canary"
    agent.save(path)
    data = path.read_bytes()
    packed, code, bomb = io.BytesIO(), io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(path) as stored:
        names = {name: stored.read(name) for name in stored.namelist()}
    largest, flipped = max(names.values(), key=len), bytearray(data)
    flipped[data.index(largest) + len(largest) // 2] ^= 1  # where its checksum looks
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in names.items():
            archive.writestr(name, content)
    np.savez(code, allow_pickle=True, plain=np.array([Touch(canary)], object))
    with zipfile.ZipFile(bomb, "w") as archive:
        header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999,), }"
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
        archive.writestr("plain.npy", content)
    before = pickle.dumps(agent.state_dict())
    for content in (
        *(b"", data[:-100], data[: len(data) // 2], bytes(flipped), b"of somebody else"),
        *(packed.getvalue(), code.getvalue(), bomb.getvalue(), pickle.dumps(Touch(canary))),
    ):
        path.write_bytes(content)
        with pytest.raises(
            ValueError, match="'path' parameter of load must be the file of a state"
        ):
            agent.load(path)
    with path.open("wb") as file:
        file.truncate(1 << 40)  # of holes
    with pytest.raises(ValueError, match="it has 1,099,511,627,776 bytes"):
        agent.load(path)
    with pytest.raises(FileNotFoundError):
        agent.load(tmp_path / "nowhere.npz")
    assert pickle.dumps(agent.state_dict()) == before
    assert not canary.exists()


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("tv-gp-ucb", {"eps": "fit"}),
        ("ui-gp-ucb", {"model": "noise"}),
        ("wgp-ucb", {"gain": "bound", "confidence": "anytime"}),
        ("wgp-ucb", {"confidence_width": lambda steps: 1.0 + steps}),
        ("sw-gp-ucb", {"window": np.inf}),
        ("thompson", {"prior": "gaussian"}),
    ],
)
def test_other_forms_of_agents_go_on(name: str, parameters: dict[str, Any]) -> None:
    agent, other = learned(name, **parameters), wgp_agents.make(name, PROBLEM, **parameters)
    if name == "sw-gp-ucb":
        other.reset(1)  # also an agent that has played before
        driven(other, 2 * STEPS)
    other.load_state_dict(agent.state_dict())
    assert driven(other, STEPS, 1) == driven(agent, STEPS, 1)


def test_an_agent_without_a_seed_has_no_state() -> None:
    with pytest.raises(RuntimeError, match=r"WGPUCB\.reset"):
        wgp_agents.make("wgp-ucb", PROBLEM).state_dict()


class Ring(Surrogate):
    """A user's: the mean of each arm's last rewards, kept in ways that users keep things."""

    def __init__(self, action_set: ActionSet) -> None:
        super().__init__(action_set)
        batch, n = len(self.held), len(action_set.candidates.places[0])
        self.rows = np.zeros((batch, n))
        self.alias = self.rows
        self.last: deque[float] = deque(maxlen=3)
        self.by_arm: dict[int, list[float]] = {}
        self.rng = np.random.default_rng(0)
        self.best: Any = None
        self.helper = Helper()

    def restart(self, mask: Any, forgetting: Any) -> None:
        self.rows[mask] = 0.0

    def update(self, plays: Plays, rewards: Any, active: Any) -> None:  # type: ignore[override]
        arm = int(plays.actions[0])
        self.helper.count += 1
        self.last.append(float(rewards[0]))
        self.by_arm.setdefault(arm, []).append(sum(self.last) + self.rng.random())
        self.rows[0, arm] = np.mean(self.by_arm[arm])
        self.best = np.float64(max(self.last))

    def predict(self, points: Points, learners: Any = None) -> Prediction:
        mean = self.alias + (self.best or 0.0) * self.helper.count * np.arange(self.rows.shape[1])
        return Prediction(mean, np.ones_like(mean), np.ones_like(mean))


class Helper:
    count = 0

    def __init__(self) -> None:
        self.count = 0


def own(surrogate: Any, rule: RestartRule | None = None) -> GPAgent:
    agent = GPAgent(PROBLEM, surrogate=surrogate, confidence_width=1.0, restart_rule=rule)
    agent.reset(5)
    return agent


def test_a_users_part_goes_on_and_what_was_one_array_stays_one() -> None:
    agent, other = own(Ring), own(Ring)
    driven(agent, STEPS)
    driven(other, EARLIER, 4)
    other.load_state_dict(agent.state_dict())
    assert driven(other, STEPS, 1) == driven(agent, STEPS, 1)
    surrogate = other.surrogate
    assert isinstance(surrogate, Ring)
    assert surrogate.alias is surrogate.rows
    assert surrogate.last.maxlen == 3


@pytest.mark.parametrize("surrogate", [RestartSurrogate, WindowSurrogate])
def test_what_was_one_array_stays_one(surrogate: Any) -> None:
    agent, other = own(surrogate), own(surrogate)
    driven(agent, STEPS)
    other.load_state_dict(agent.state_dict())
    mean = other.posterior().mean
    other.observe(3, 2.0)  # written to one array, read from the other
    assert abs(other.posterior().mean - mean).max() > 1e-3


def test_who_holds_an_array_of_the_agent_keeps_it_as_it_was() -> None:
    agent, other = own(Ring), own(Ring)
    driven(agent, STEPS)
    surrogate = other.surrogate
    assert isinstance(surrogate, Ring)
    held = surrogate.rows
    other.load_state_dict(agent.state_dict())
    assert not held.any()


class Odd(RestartRule):
    """A user's rule that holds what cannot be written down."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing


@pytest.mark.parametrize("thing", [{1, 2}, io.StringIO(), np.random.RandomState(0), 1j, object()])
def test_what_cannot_be_written_down_is_named(thing: Any) -> None:
    with pytest.raises(TypeError, match=r"^agent\.restart_rule\.thing must be"):
        own(Ring, Odd(thing)).state_dict()


def test_arrays_that_overlap_are_named() -> None:
    whole = np.zeros(5)
    with pytest.raises(TypeError, match=r"thing\[1\] must not share memory with .*thing\[0\]"):
        own(Ring, Odd([whole, whole[2:]])).state_dict()
