"""The one table of agents, open to others' agents."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import starmap

from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.keywords import keywords
from wgp_gym.validation import check_choice, check_names, near_miss, reject

__all__ = [
    "AGENTS",
    "FAMILIES",
    "AgentEntry",
    "agent_class",
    "agent_entry",
    "agent_parameters",
    "make",
    "names",
    "register_agent",
]


@dataclass(frozen=True)
class AgentEntry:
    """One agent.

    Attributes:
        name: The name that `make` takes.
        entry_point: Its class, as "module:Class".
        title: How it is written in figures and tables.
        summary: One line that says what it is.
        family: The family of models that it belongs to, one of `FAMILIES`.
        preset: Parameters that it takes unless others are given.
        extra: The extra of the package that it needs, or "".
        reference: Whether it reads the truth: a reference line, no competitor.
        fixed: Those of its presets that nobody may change: they make it what its name says.
        files: Parameters that name a file; a .zip has its notes beside it in a .json file.
        brought: Values of these that name what the package brings, and no file.
        objects: Parameters without which it is not made, that are objects; or, in an experiment's
            file, where one stands, as "module:name".
        code_only: Parameters that `make` takes, but no experiment's file and no flag: such files
            are passed from hand to hand.
    """

    name: str
    entry_point: str
    title: str
    summary: str
    family: str
    preset: tuple[tuple[str, object], ...] = ()
    extra: str = ""
    reference: bool = False
    fixed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    code_only: tuple[str, ...] = ()


GP, LINEAR, ARMS, REST = FAMILIES = ("Gaussian process", "linear", "K-armed", "other")
TRAINED = {"ppo": "PPO", "a2c": "A2C", "dqn": "DQN", "recurrent-ppo": "RecurrentPPO"}
REFERENCES = ("oracle", "oracle-restart", "oracle-discount")
HOME = "wgp_agents.algorithms"
AGENT_RULE = "a class at the top of a module, or its 'module:Class'"
ENTRY_POINT = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")  # as "package.module:Class"


def _rows(family: str, room: str, *rows: tuple[str, str, str, str]) -> Iterator[AgentEntry]:
    """Yield the entries of a room of `algorithms`: name, class, title and summary each.

    A class stands in the module that is called as the agent, or as "module:Class" in another.
    """
    for name, made, title, summary in rows:
        place = made if ":" in made else f"{name.replace('-', '_')}:{made}"
        yield AgentEntry(name, f"{HOME}.{room}.{place}", title, summary, family)


def _trained(name: str, title: str) -> AgentEntry:
    """Return the entry of an algorithm of stable-baselines3."""
    return AgentEntry(
        name,
        f"{HOME}.learned.sb3:SB3Agent",
        title,
        "a trained policy",
        REST,
        preset=(("algo", name),),
        extra="rl",
        fixed=("algo",),
        files=("model",),
        code_only=("trust",),  # it runs what stands in a model's file
    )


_TABLE: tuple[AgentEntry, ...] = (
    *_rows(
        GP,
        "kernelized",
        ("wgp-ucb", "WGPUCB", "WGP-UCB", "weights that favour recent data"),
        ("igp-ucb", "IGPUCB", "IGP-UCB", "all data alike: the stationary learner"),
        ("r-gp-ucb", "RGPUCB", "R-GP-UCB", "forgets everything every H steps"),
        ("sw-gp-ucb", "SWGPUCB", "SW-GP-UCB", "looks at the last W steps"),
        ("gp-ucb", "GPUCB", "GP-UCB", "all data, a Bayesian width"),
        ("gp-ts", "GPTS", "GP-TS", "all data, Thompson sampling"),
        ("wgp-ts", "WGPTS", "WGP-TS", "weights, Thompson sampling"),
        ("rand-wgp-ucb", "RandWGPUCB", "RandWGP-UCB", "weights, a random width at each step"),
        ("tv-gp-ucb", "TVGPUCB", "TV-GP-UCB", "models the drift as a random walk"),
        ("tv-r-gp-ucb", "TVRGPUCB", "TV-R-GP-UCB", "GP-UCB restarted as the drift's rate asks"),
    ),
    AgentEntry(
        "qff-wgp-ucb",
        f"{HOME}.kernelized.wgp_ucb:WGPUCB",
        "QFF-WGP-UCB",
        "WGP-UCB on quadrature Fourier features",
        GP,
        preset=(("features", "quadrature"),),
    ),
    *_rows(
        GP,
        "adaptive",
        (
            "adaptive-wgp-ucb",
            "AdaptiveWGPUCB",
            "Adaptive WGP-UCB",
            "nothing to set: learns drift, noise and unit",
        ),
        ("bob-wgp-ucb", "BOBWGPUCB", "BOB-WGP-UCB", "WGP-UCB in blocks, a bandit over discounts"),
        ("et-gp-ucb", "ETGPUCB", "ET-GP-UCB", "GP-UCB restarted by a reward that does not fit"),
        ("dal-gp-ucb", "DALGPUCB", "DAL-GP-UCB", "IGP-UCB restarted by tests of a few arms"),
        ("ui-gp-ucb", "UIGPUCB", "UI-GP-UCB", "injects variance at each step"),
        ("master", "MASTER", "MASTER", "IGP-UCB on many scales of time, restarted by tests"),
        ("r-perp", "RPERP", "R-PERP", "restarts, batches in random order that eliminate"),
        ("pe-gp-ucb", "PEGPUCB", "PE-GP-UCB", "models of the drift, eliminated by tests"),
        ("opkb", "OPKB", "OPKB", "optimal designs, and replays to detect a change"),
        ("w-dbo", "WDBO", "W-DBO", "models time, and drops what is stale"),
    ),
    *_rows(
        LINEAR,
        "linear",
        ("lin-ucb", "LinUCB", "LinUCB", "all data alike"),
        ("d-lin-ucb", "DLinUCB", "D-LinUCB", "weights that favour recent data"),
        ("sw-lin-ucb", "SWLinUCB", "SW-LinUCB", "the last w steps"),
        ("restart-lin-ucb", "RestartLinUCB", "RestartUCB", "forgets everything every H steps"),
        ("d-rand-lin-ucb", "DRandLinUCB", "D-RandLinUCB", "weights, a random width at each step"),
        ("d-lin-ts", "DLinTS", "D-LinTS", "weights, Thompson sampling"),
        ("bob-lin-ucb", "BOBLinUCB", "BOB-LinUCB", "SW-LinUCB in blocks, a bandit over windows"),
        ("d-glm-ucb", "DGLMUCB", "D-GLM-UCB", "weights, rewards of logistic mean"),
        ("sw-glm-ucb", "SWGLMUCB", "SW-GLM-UCB", "the last tau steps, rewards of logistic mean"),
    ),
    *_rows(
        ARMS,
        "arms",
        ("ucb1", "UCB1", "UCB1", "all plays alike"),
        ("thompson", "ThompsonSampling", "Thompson sampling", "draws from the posterior"),
        ("d-ucb", "DUCB", "D-UCB", "plays that fade"),
        ("sw-ucb", "SWUCB", "SW-UCB", "the last tau steps"),
        ("d-ts", "DTS", "D-TS", "Thompson sampling on plays that fade"),
        ("exp3", "Exp3", "Exp3", "exponential weights, for any rewards"),
        ("exp3-s", "Exp3S", "Exp3.S", "exponential weights that are shared out"),
        ("rexp3", "Rexp3", "Rexp3", "Exp3 restarted in batches"),
        ("cusum-ucb", "CUSUMUCB", "CUSUM-UCB", "UCB restarted by a CUSUM test"),
        ("pht-ucb", "PHTUCB", "PHT-UCB", "UCB restarted by a Page-Hinkley test"),
        ("m-ucb", "MUCB", "M-UCB", "UCB restarted by a test of two windows"),
        ("glr-ucb", "GLRUCB", "GLR-UCB", "UCB restarted by a likelihood-ratio test"),
        ("adswitch", "AdSwitch", "AdSwitch", "elimination, with checks of what was eliminated"),
    ),
    *starmap(_trained, TRAINED.items()),
    AgentEntry(
        "learned-wgp-ucb",
        f"{HOME}.learned.learned_wgp_ucb:LearnedWGPUCB",
        "Learned WGP-UCB",
        "mixes the models of adaptive-wgp-ucb by a gate that was trained",
        GP,
        files=("gate",),
        brought=("general", "untrained"),
    ),
    *_rows(
        REST,
        "learned",
        (
            "neural-greedy",
            "NeuralGreedy",
            "neural greedy",
            "a network that starts untrained and learns within the episode",
        ),
        ("neural-ucb", "NeuralUCB", "NeuralUCB", "such a network's bound, on the last plays"),
        ("neural-ts", "NeuralTS", "NeuralTS", "such a network, Thompson sampling"),
    ),
    AgentEntry(
        "policy",
        f"{HOME}.learned.policy:PolicyAgent",
        "policy",
        "a function or model of anybody's",
        REST,
        objects=("policy",),
    ),
    AgentEntry(
        "in-context",
        f"{HOME}.learned.in_context:InContext",
        "in-context",
        "a network that was trained to learn, on drifting worlds",
        REST,
        files=("model",),
        brought=("general", "abrupt", "slow"),
    ),
    *_rows(
        REST,
        "references",
        ("random", "baselines:Random", "random", "plays uniformly at random"),
        ("oracle", "baselines:Oracle", "oracle", "plays the true optimum: a reference"),
    ),
    *_rows(
        GP,
        "references",
        (
            "oracle-restart",
            "OracleRestart",
            "oracle restart",
            "IGP-UCB told when f changes: a reference",
        ),
        (
            "oracle-discount",
            "OracleDiscount",
            "oracle discount",
            "WGP-UCB with the best eta in hindsight: a reference",
        ),
    ),
)
AGENTS: dict[str, AgentEntry] = {
    entry.name: replace(entry, reference=entry.name in REFERENCES) for entry in _TABLE
}


def names() -> list[str]:
    """Return the names of all agents that need no extra, no training and no object of yours."""
    return [name for name, entry in AGENTS.items() if not (entry.extra or entry.objects)]


def register_agent(
    name: str,
    agent: str | type[Agent],
    *,
    title: str = "",
    summary: str = "",
    family: str = REST,
    preset: Mapping[str, object] | None = None,
    reference: bool = False,
    files: Sequence[str] = (),
) -> AgentEntry:
    """Give an agent a name that `make` takes, in this process.

    An experiment's file and the command line, which begin without it, name the class itself, as
    "module:Class". To register the same agent once more changes nothing.

    Args:
        name: Its name, without a colon.
        agent: Its class, or where that stands, as "module:Class": then it is imported when it is
            first made.
        title: How it is written in figures and tables; default: the class's name.
        summary: One line that says what it is; default: where its class stands.
        family: One of `FAMILIES`; by it `wgp-gym list` and the colours of figures are ordered.
        preset: Parameters that it takes unless others are given.
        reference: Whether it reads the truth: a reference line, no competitor.
        files: Parameters that name a file; runs are then bound to what stands in it.

    Returns:
        Its entry in `AGENTS`.

    Raises:
        ValueError: If the name is taken, `agent` is no class of an agent that can be imported, or
            there is no such family.
    """
    owner = "register_agent"
    if not isinstance(name, str) or not name.strip() or ":" in name or len(name.split()) != 1:
        reject("name", owner, "one word without a colon, as 'my-agent'", name)
    if not isinstance(agent, str | type):
        reject("agent", owner, AGENT_RULE, agent)
    place = agent if isinstance(agent, str) else f"{agent.__module__}:{agent.__qualname__}"
    if not ENTRY_POINT.fullmatch(place):
        reject("agent", owner, AGENT_RULE, agent)
    made = None if isinstance(agent, str) else _check_class("agent", owner, agent)
    entry = AgentEntry(
        name,
        place,
        title or place.partition(":")[2],
        summary or f"{place}, registered in this process",
        check_choice("family", family, owner, FAMILIES),
        preset=tuple((preset or {}).items()),
        reference=reference,
        files=tuple(files),
    )
    if AGENTS.setdefault(name, entry) != entry:
        reject("name", owner, "one that no other agent has", name)
    if made is not None:
        _REGISTERED[name] = made
    return entry


_REGISTERED: dict[str, type[Agent]] = {}  # classes that this process was given as such


def agent_entry(name: str, owner: str = "wgp_agents.make") -> AgentEntry:
    """Return what is known of an agent; nothing is imported.

    Args:
        name: A name in `AGENTS`, or "module:Class".
        owner: Whose parameter the name is, for errors.

    Raises:
        ValueError: If there is no agent of this name.
    """
    if isinstance(name, str) and name in AGENTS:
        return AGENTS[name]
    if isinstance(name, str) and ENTRY_POINT.fullmatch(name):
        module, _, title = name.partition(":")
        return AgentEntry(name, name, title, f"of the module {module}", REST)
    rule = "the name of an agent, one of wgp_agents.AGENTS, or a class as 'module:Class'"
    reject("name", owner, rule + near_miss(name, list(AGENTS)), name)


def agent_class(name: str) -> type[Agent]:
    """Return an agent's class; its module is imported only now.

    Args:
        name: A name in `AGENTS`, or "module:Class". Whose module is not part of this package is
            looked for where Python looks (`sys.path`), and to import it runs what is in it.

    Raises:
        ValueError: If there is no such agent, or its module cannot be imported.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    if name in _REGISTERED:
        return _REGISTERED[name]
    entry = agent_entry(name)
    module, _, attribute = entry.entry_point.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and entry.extra:
            message = f"The agent {name!r} needs the extra {entry.extra!r}: {error}."
            raise ModuleNotFoundError(f"{message} Install wgp-gym[{entry.extra}].") from error
        if module.startswith(f"{HOME}."):
            raise
        why = f"{type(error).__name__}: {error}"
        rule = f"that of a class whose module can be imported: is it on Python's path? ({why})"
        raise ValueError(
            f"The 'name' parameter of wgp_agents.make must be {rule}. Got {name!r} instead."
        ) from error
    shown = entry.entry_point if found is not None else f"{name!r}: {module} has no {attribute}"
    return _check_class("name", "wgp_agents.make", found, shown)


def _check_class(key: str, owner: str, found: object, shown: object = None) -> type[Agent]:
    """Return what is a class of agents that can be made.

    Raises:
        ValueError: If it is none.
    """
    if not (isinstance(found, type) and issubclass(found, Agent)) or inspect.isabstract(found):
        rule = "a subclass of wgp_agents.Agent that has its abstract methods, or where one stands"
        reject(key, owner, rule, found if shown is None else shown)
    return found


def agent_parameters(name: str) -> list[str]:
    """Return the names of the parameters that an experiment may give an agent.

    Raises:
        ValueError: If there is no such agent.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    made, entry = agent_class(name), agent_entry(name)
    kept = {*entry.fixed, *entry.code_only}
    return [parameter for parameter in keywords(made) if parameter not in kept]


def make(name: str, env: EnvLike, **parameters: object) -> Agent:
    """Make an agent for an environment.

    Args:
        name: One of `names()`; or of the trained ones, "ppo", "a2c", "dqn", "recurrent-ppo"; or
            a class of anybody's, as "module:Class".
        env: The environment to play, single or vector, or a `BanditProblem`.
        **parameters: The agent's own parameters; see its class.

    Raises:
        ValueError: If there is no such agent or parameter, or one is out of its range.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    made: Callable[..., Agent] = agent_class(name)
    entry = agent_entry(name)
    check_names(parameters, f"The agent {name!r}", [*agent_parameters(name), *entry.code_only])
    return made(env, **{**dict(entry.preset), **parameters})
