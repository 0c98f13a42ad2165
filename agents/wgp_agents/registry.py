"""The one table of agents."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from wgp_agents.base import Agent
from wgp_agents.parameters import keywords
from wgp_gym.validation import check_choice, check_names

__all__ = ["AGENTS", "FAMILIES", "AgentEntry", "agent_class", "agent_parameters", "make", "names"]


@dataclass(frozen=True)
class AgentEntry:
    """One agent.

    Attributes:
        name: The name that `make` takes.
        entry_point: Its class, as "module:Class" within `wgp_agents.algorithms`.
        title: How it is written in figures and tables.
        summary: One line that says what it is.
        family: The family of models that it belongs to, one of `FAMILIES`.
        preset: Parameters that it takes unless others are given.
        extra: The extra of the package that it needs, or "".
        reference: Whether it reads the truth: a reference line, no competitor.
        fixed: Those of its presets that nobody may change: they make it what its name says.
        files: Parameters that name a file, whose notes lie beside it in a .json file.
        code_only: Parameters that `make` takes, but no experiment's file and no flag: such files
            are passed from hand to hand.
    """

    name: str
    entry_point: str
    title: str
    summary: str
    family: str
    preset: tuple[tuple[str, Any], ...] = ()
    extra: str = ""
    reference: bool = False
    fixed: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    code_only: tuple[str, ...] = ()


GP, LINEAR, ARMS, REST = FAMILIES = ("Gaussian process", "linear", "K-armed", "other")

_TABLE: tuple[AgentEntry, ...] = (
    AgentEntry(
        "wgp-ucb",
        "kernelized.wgp_ucb:WGPUCB",
        "WGP-UCB",
        "weights that favour recent data",
        GP,
    ),
    AgentEntry(
        "qff-wgp-ucb",
        "kernelized.wgp_ucb:WGPUCB",
        "QFF-WGP-UCB",
        "WGP-UCB on quadrature Fourier features",
        GP,
        preset=(("features", "quadrature"),),
    ),
    AgentEntry(
        "igp-ucb",
        "kernelized.igp_ucb:IGPUCB",
        "IGP-UCB",
        "all data alike: the stationary learner",
        GP,
    ),
    AgentEntry(
        "r-gp-ucb",
        "kernelized.r_gp_ucb:RGPUCB",
        "R-GP-UCB",
        "forgets everything every H steps",
        GP,
    ),
    AgentEntry(
        "sw-gp-ucb",
        "kernelized.sw_gp_ucb:SWGPUCB",
        "SW-GP-UCB",
        "looks at the last W steps",
        GP,
    ),
    AgentEntry("gp-ucb", "kernelized.gp_ucb:GPUCB", "GP-UCB", "all data, a Bayesian width", GP),
    AgentEntry("gp-ts", "kernelized.gp_ts:GPTS", "GP-TS", "all data, Thompson sampling", GP),
    AgentEntry("wgp-ts", "kernelized.wgp_ts:WGPTS", "WGP-TS", "weights, Thompson sampling", GP),
    AgentEntry(
        "rand-wgp-ucb",
        "kernelized.rand_wgp_ucb:RandWGPUCB",
        "RandWGP-UCB",
        "weights, a width drawn anew at each step",
        GP,
    ),
    AgentEntry(
        "tv-gp-ucb",
        "kernelized.tv_gp_ucb:TVGPUCB",
        "TV-GP-UCB",
        "models the drift as a random walk",
        GP,
    ),
    AgentEntry(
        "tv-r-gp-ucb",
        "kernelized.tv_r_gp_ucb:TVRGPUCB",
        "TV-R-GP-UCB",
        "GP-UCB restarted as the drift's rate asks",
        GP,
    ),
    AgentEntry(
        "adaptive-wgp-ucb",
        "adaptive.adaptive_wgp_ucb:AdaptiveWGPUCB",
        "Adaptive WGP-UCB",
        "nothing to set: learns drift, noise and unit",
        GP,
    ),
    AgentEntry(
        "bob-wgp-ucb",
        "adaptive.bob_wgp_ucb:BOBWGPUCB",
        "BOB-WGP-UCB",
        "WGP-UCB in blocks, a bandit over discounts",
        GP,
    ),
    AgentEntry(
        "et-gp-ucb",
        "adaptive.et_gp_ucb:ETGPUCB",
        "ET-GP-UCB",
        "GP-UCB restarted by a reward that does not fit",
        GP,
    ),
    AgentEntry(
        "dal-gp-ucb",
        "adaptive.dal_gp_ucb:DALGPUCB",
        "DAL-GP-UCB",
        "IGP-UCB restarted by tests of a few arms",
        GP,
    ),
    AgentEntry(
        "ui-gp-ucb",
        "adaptive.ui_gp_ucb:UIGPUCB",
        "UI-GP-UCB",
        "injects variance at each step",
        GP,
    ),
    AgentEntry(
        "master",
        "adaptive.master:MASTER",
        "MASTER",
        "IGP-UCB on many scales of time, restarted by tests",
        GP,
    ),
    AgentEntry(
        "r-perp",
        "adaptive.r_perp:RPERP",
        "R-PERP",
        "restarts, batches in random order that eliminate",
        GP,
    ),
    AgentEntry(
        "pe-gp-ucb",
        "adaptive.pe_gp_ucb:PEGPUCB",
        "PE-GP-UCB",
        "models of the drift, eliminated by tests",
        GP,
    ),
    AgentEntry(
        "opkb",
        "adaptive.opkb:OPKB",
        "OPKB",
        "optimal designs, and replays to detect a change",
        GP,
    ),
    AgentEntry(
        "w-dbo",
        "adaptive.w_dbo:WDBO",
        "W-DBO",
        "models time, and drops what is stale",
        GP,
    ),
    AgentEntry("lin-ucb", "linear.lin_ucb:LinUCB", "LinUCB", "all data alike", LINEAR),
    AgentEntry(
        "d-lin-ucb",
        "linear.d_lin_ucb:DLinUCB",
        "D-LinUCB",
        "weights that favour recent data",
        LINEAR,
    ),
    AgentEntry(
        "sw-lin-ucb",
        "linear.sw_lin_ucb:SWLinUCB",
        "SW-LinUCB",
        "the last w steps",
        LINEAR,
    ),
    AgentEntry(
        "restart-lin-ucb",
        "linear.restart_lin_ucb:RestartLinUCB",
        "RestartUCB",
        "forgets everything every H steps",
        LINEAR,
    ),
    AgentEntry(
        "d-rand-lin-ucb",
        "linear.d_rand_lin_ucb:DRandLinUCB",
        "D-RandLinUCB",
        "weights, a width drawn anew at each step",
        LINEAR,
    ),
    AgentEntry(
        "d-lin-ts",
        "linear.d_lin_ts:DLinTS",
        "D-LinTS",
        "weights, Thompson sampling",
        LINEAR,
    ),
    AgentEntry(
        "d-glm-ucb",
        "linear.d_glm_ucb:DGLMUCB",
        "D-GLM-UCB",
        "weights, rewards of logistic mean",
        LINEAR,
    ),
    AgentEntry("ucb1", "arms.ucb1:UCB1", "UCB1", "all plays alike", ARMS),
    AgentEntry(
        "thompson",
        "arms.thompson:ThompsonSampling",
        "Thompson sampling",
        "draws from the posterior",
        ARMS,
    ),
    AgentEntry("d-ucb", "arms.d_ucb:DUCB", "D-UCB", "plays that fade", ARMS),
    AgentEntry("sw-ucb", "arms.sw_ucb:SWUCB", "SW-UCB", "the last tau steps", ARMS),
    AgentEntry("d-ts", "arms.d_ts:DTS", "D-TS", "Thompson sampling on plays that fade", ARMS),
    AgentEntry("exp3", "arms.exp3:Exp3", "Exp3", "exponential weights, for any rewards", ARMS),
    AgentEntry(
        "exp3-s",
        "arms.exp3_s:Exp3S",
        "Exp3.S",
        "exponential weights that are shared out",
        ARMS,
    ),
    AgentEntry("rexp3", "arms.rexp3:Rexp3", "Rexp3", "Exp3 restarted in batches", ARMS),
    AgentEntry(
        "cusum-ucb",
        "arms.cusum_ucb:CUSUMUCB",
        "CUSUM-UCB",
        "UCB restarted by a CUSUM test",
        ARMS,
    ),
    AgentEntry(
        "m-ucb",
        "arms.m_ucb:MUCB",
        "M-UCB",
        "UCB restarted by a test of two windows",
        ARMS,
    ),
    AgentEntry(
        "glr-ucb",
        "arms.glr_ucb:GLRUCB",
        "GLR-UCB",
        "UCB restarted by a likelihood-ratio test",
        ARMS,
    ),
    *(
        AgentEntry(
            name,
            "learned.sb3:SB3Agent",
            title,
            "a trained policy",
            REST,
            preset=(("algo", name),),
            extra="rl",
            fixed=("algo",),
            files=("model",),
            code_only=("trust",),  # it runs what stands in a model's file
        )
        for name, title in (
            ("ppo", "PPO"),
            ("a2c", "A2C"),
            ("dqn", "DQN"),
            ("recurrent-ppo", "RecurrentPPO"),
        )
    ),
    AgentEntry(
        "neural-greedy",
        "learned.neural_greedy:NeuralGreedy",
        "neural greedy",
        "a network that starts untrained and learns within the episode",
        REST,
    ),
    AgentEntry(
        "random",
        "references.baselines:Random",
        "random",
        "plays uniformly at random",
        REST,
    ),
    AgentEntry(
        "oracle",
        "references.baselines:Oracle",
        "oracle",
        "plays the true optimum: a reference",
        REST,
        reference=True,
    ),
    AgentEntry(
        "oracle-restart",
        "references.oracle_restart:OracleRestart",
        "oracle restart",
        "IGP-UCB told when f changes: a reference",
        GP,
        reference=True,
    ),
    AgentEntry(
        "oracle-discount",
        "references.oracle_discount:OracleDiscount",
        "oracle discount",
        "WGP-UCB with the best eta in hindsight: a reference",
        GP,
        reference=True,
    ),
)
AGENTS: dict[str, AgentEntry] = {entry.name: entry for entry in _TABLE}


def names() -> list[str]:
    """Return the names of all agents that need no extra and no training."""
    return [name for name, entry in AGENTS.items() if not entry.extra]


def agent_class(name: str) -> type[Agent]:
    """Return an agent's class; its module is imported only now.

    Raises:
        ValueError: If there is no such agent.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    entry = AGENTS[check_choice("name", name, "wgp_agents.make", AGENTS)]
    module, _, attribute = entry.entry_point.partition(":")
    try:
        found: type[Agent] = getattr(
            importlib.import_module(f"wgp_agents.algorithms.{module}"), attribute
        )
    except ModuleNotFoundError as error:
        if not entry.extra:
            raise
        message = f"The agent {name!r} needs the extra {entry.extra!r}: {error}."
        raise ModuleNotFoundError(f"{message} Install wgp-gym[{entry.extra}].") from error
    return found


def agent_parameters(name: str) -> list[str]:
    """Return the names of the parameters that an experiment may give an agent.

    Raises:
        ValueError: If there is no such agent.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    made, entry = agent_class(name), AGENTS[name]
    kept = {*entry.fixed, *entry.code_only}
    return [parameter for parameter in keywords(made.__init__) if parameter not in kept]


def make(name: str, env: Any, **parameters: Any) -> Agent:
    """Make an agent for an environment.

    Args:
        name: One of `names()`, or of the trained ones: "ppo", "a2c", "dqn", "recurrent-ppo".
        env: The environment to play, single or vector, or a `BanditProblem`.
        **parameters: The agent's own parameters; see its class.

    Raises:
        ValueError: If there is no such agent or parameter, or one is out of its range.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    made = agent_class(name)
    known = [*agent_parameters(name), *AGENTS[name].code_only]
    check_names(parameters, f"The agent {name!r}", known)
    return made(env, **{**dict(AGENTS[name].preset), **parameters})
