"""Agents for bandits in a drifting world: what an editor sees (scripts/write_stub.py)."""

from typing import Literal, overload

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB as AdaptiveWGPUCB
from wgp_agents.algorithms.adaptive.bob_wgp_ucb import BOBWGPUCB as BOBWGPUCB
from wgp_agents.algorithms.adaptive.dal_gp_ucb import DALGPUCB as DALGPUCB
from wgp_agents.algorithms.adaptive.et_gp_ucb import ETGPUCB as ETGPUCB
from wgp_agents.algorithms.adaptive.master import MASTER as MASTER
from wgp_agents.algorithms.adaptive.opkb import OPKB as OPKB
from wgp_agents.algorithms.adaptive.pe_gp_ucb import PEGPUCB as PEGPUCB
from wgp_agents.algorithms.adaptive.r_perp import RPERP as RPERP
from wgp_agents.algorithms.adaptive.ui_gp_ucb import UIGPUCB as UIGPUCB
from wgp_agents.algorithms.adaptive.w_dbo import WDBO as WDBO
from wgp_agents.algorithms.arms.adswitch import AdSwitch as AdSwitch
from wgp_agents.algorithms.arms.cusum_ucb import CUSUMUCB as CUSUMUCB
from wgp_agents.algorithms.arms.d_ts import DTS as DTS
from wgp_agents.algorithms.arms.d_ucb import DUCB as DUCB
from wgp_agents.algorithms.arms.exp3 import Exp3 as Exp3
from wgp_agents.algorithms.arms.exp3_s import Exp3S as Exp3S
from wgp_agents.algorithms.arms.glr_ucb import GLRUCB as GLRUCB
from wgp_agents.algorithms.arms.m_ucb import MUCB as MUCB
from wgp_agents.algorithms.arms.pht_ucb import PHTUCB as PHTUCB
from wgp_agents.algorithms.arms.rexp3 import Rexp3 as Rexp3
from wgp_agents.algorithms.arms.sw_ucb import SWUCB as SWUCB
from wgp_agents.algorithms.arms.thompson import ThompsonSampling as ThompsonSampling
from wgp_agents.algorithms.arms.ucb1 import UCB1 as UCB1
from wgp_agents.algorithms.kernelized.gp_ts import GPTS as GPTS
from wgp_agents.algorithms.kernelized.gp_ucb import GPUCB as GPUCB
from wgp_agents.algorithms.kernelized.igp_ucb import IGPUCB as IGPUCB
from wgp_agents.algorithms.kernelized.r_gp_ucb import RGPUCB as RGPUCB
from wgp_agents.algorithms.kernelized.rand_wgp_ucb import RandWGPUCB as RandWGPUCB
from wgp_agents.algorithms.kernelized.sw_gp_ucb import SWGPUCB as SWGPUCB
from wgp_agents.algorithms.kernelized.tv_gp_ucb import TVGPUCB as TVGPUCB
from wgp_agents.algorithms.kernelized.tv_r_gp_ucb import TVRGPUCB as TVRGPUCB
from wgp_agents.algorithms.kernelized.wgp_ts import WGPTS as WGPTS
from wgp_agents.algorithms.kernelized.wgp_ucb import WGPUCB as WGPUCB
from wgp_agents.algorithms.learned.in_context import InContext as InContext
from wgp_agents.algorithms.learned.learned_wgp_ucb import LearnedWGPUCB as LearnedWGPUCB
from wgp_agents.algorithms.learned.neural_greedy import NeuralGreedy as NeuralGreedy
from wgp_agents.algorithms.learned.neural_ts import NeuralTS as NeuralTS
from wgp_agents.algorithms.learned.neural_ucb import NeuralUCB as NeuralUCB
from wgp_agents.algorithms.learned.policy import PolicyAgent as PolicyAgent
from wgp_agents.algorithms.learned.sb3 import SB3Agent as SB3Agent
from wgp_agents.algorithms.linear.bob_lin_ucb import BOBLinUCB as BOBLinUCB
from wgp_agents.algorithms.linear.d_glm_ucb import DGLMUCB as DGLMUCB
from wgp_agents.algorithms.linear.d_lin_ts import DLinTS as DLinTS
from wgp_agents.algorithms.linear.d_lin_ucb import DLinUCB as DLinUCB
from wgp_agents.algorithms.linear.d_rand_lin_ucb import DRandLinUCB as DRandLinUCB
from wgp_agents.algorithms.linear.lin_ucb import LinUCB as LinUCB
from wgp_agents.algorithms.linear.restart_lin_ucb import RestartLinUCB as RestartLinUCB
from wgp_agents.algorithms.linear.sw_glm_ucb import SWGLMUCB as SWGLMUCB
from wgp_agents.algorithms.linear.sw_lin_ucb import SWLinUCB as SWLinUCB
from wgp_agents.algorithms.references.baselines import Oracle as Oracle
from wgp_agents.algorithms.references.baselines import Random as Random
from wgp_agents.algorithms.references.oracle_discount import OracleDiscount as OracleDiscount
from wgp_agents.algorithms.references.oracle_restart import OracleRestart as OracleRestart
from wgp_agents.base import Agent as Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.evaluation import evaluate as evaluate
from wgp_gym.threads import get_threads as get_threads
from wgp_gym.threads import set_threads as set_threads
from wgp_agents.registry import AGENTS as AGENTS
from wgp_agents.registry import names as names
from wgp_agents.registry import register_agent as register_agent

__version__: str

@overload
def make(name: Literal["wgp-ucb", "qff-wgp-ucb"], env: EnvLike, **parameters: object) -> WGPUCB: ...

@overload
def make(name: Literal["igp-ucb"], env: EnvLike, **parameters: object) -> IGPUCB: ...

@overload
def make(name: Literal["r-gp-ucb"], env: EnvLike, **parameters: object) -> RGPUCB: ...

@overload
def make(name: Literal["sw-gp-ucb"], env: EnvLike, **parameters: object) -> SWGPUCB: ...

@overload
def make(name: Literal["gp-ucb"], env: EnvLike, **parameters: object) -> GPUCB: ...

@overload
def make(name: Literal["gp-ts"], env: EnvLike, **parameters: object) -> GPTS: ...

@overload
def make(name: Literal["wgp-ts"], env: EnvLike, **parameters: object) -> WGPTS: ...

@overload
def make(name: Literal["rand-wgp-ucb"], env: EnvLike, **parameters: object) -> RandWGPUCB: ...

@overload
def make(name: Literal["tv-gp-ucb"], env: EnvLike, **parameters: object) -> TVGPUCB: ...

@overload
def make(name: Literal["tv-r-gp-ucb"], env: EnvLike, **parameters: object) -> TVRGPUCB: ...

@overload
def make(name: Literal["adaptive-wgp-ucb"], env: EnvLike, **parameters: object) -> AdaptiveWGPUCB: ...

@overload
def make(name: Literal["bob-wgp-ucb"], env: EnvLike, **parameters: object) -> BOBWGPUCB: ...

@overload
def make(name: Literal["et-gp-ucb"], env: EnvLike, **parameters: object) -> ETGPUCB: ...

@overload
def make(name: Literal["dal-gp-ucb"], env: EnvLike, **parameters: object) -> DALGPUCB: ...

@overload
def make(name: Literal["ui-gp-ucb"], env: EnvLike, **parameters: object) -> UIGPUCB: ...

@overload
def make(name: Literal["master"], env: EnvLike, **parameters: object) -> MASTER: ...

@overload
def make(name: Literal["r-perp"], env: EnvLike, **parameters: object) -> RPERP: ...

@overload
def make(name: Literal["pe-gp-ucb"], env: EnvLike, **parameters: object) -> PEGPUCB: ...

@overload
def make(name: Literal["opkb"], env: EnvLike, **parameters: object) -> OPKB: ...

@overload
def make(name: Literal["w-dbo"], env: EnvLike, **parameters: object) -> WDBO: ...

@overload
def make(name: Literal["lin-ucb"], env: EnvLike, **parameters: object) -> LinUCB: ...

@overload
def make(name: Literal["d-lin-ucb"], env: EnvLike, **parameters: object) -> DLinUCB: ...

@overload
def make(name: Literal["sw-lin-ucb"], env: EnvLike, **parameters: object) -> SWLinUCB: ...

@overload
def make(name: Literal["restart-lin-ucb"], env: EnvLike, **parameters: object) -> RestartLinUCB: ...

@overload
def make(name: Literal["d-rand-lin-ucb"], env: EnvLike, **parameters: object) -> DRandLinUCB: ...

@overload
def make(name: Literal["d-lin-ts"], env: EnvLike, **parameters: object) -> DLinTS: ...

@overload
def make(name: Literal["bob-lin-ucb"], env: EnvLike, **parameters: object) -> BOBLinUCB: ...

@overload
def make(name: Literal["d-glm-ucb"], env: EnvLike, **parameters: object) -> DGLMUCB: ...

@overload
def make(name: Literal["sw-glm-ucb"], env: EnvLike, **parameters: object) -> SWGLMUCB: ...

@overload
def make(name: Literal["ucb1"], env: EnvLike, **parameters: object) -> UCB1: ...

@overload
def make(name: Literal["thompson"], env: EnvLike, **parameters: object) -> ThompsonSampling: ...

@overload
def make(name: Literal["d-ucb"], env: EnvLike, **parameters: object) -> DUCB: ...

@overload
def make(name: Literal["sw-ucb"], env: EnvLike, **parameters: object) -> SWUCB: ...

@overload
def make(name: Literal["d-ts"], env: EnvLike, **parameters: object) -> DTS: ...

@overload
def make(name: Literal["exp3"], env: EnvLike, **parameters: object) -> Exp3: ...

@overload
def make(name: Literal["exp3-s"], env: EnvLike, **parameters: object) -> Exp3S: ...

@overload
def make(name: Literal["rexp3"], env: EnvLike, **parameters: object) -> Rexp3: ...

@overload
def make(name: Literal["cusum-ucb"], env: EnvLike, **parameters: object) -> CUSUMUCB: ...

@overload
def make(name: Literal["pht-ucb"], env: EnvLike, **parameters: object) -> PHTUCB: ...

@overload
def make(name: Literal["m-ucb"], env: EnvLike, **parameters: object) -> MUCB: ...

@overload
def make(name: Literal["glr-ucb"], env: EnvLike, **parameters: object) -> GLRUCB: ...

@overload
def make(name: Literal["adswitch"], env: EnvLike, **parameters: object) -> AdSwitch: ...

@overload
def make(name: Literal["ppo", "a2c", "dqn", "recurrent-ppo"], env: EnvLike, **parameters: object) -> SB3Agent: ...

@overload
def make(name: Literal["learned-wgp-ucb"], env: EnvLike, **parameters: object) -> LearnedWGPUCB: ...

@overload
def make(name: Literal["neural-greedy"], env: EnvLike, **parameters: object) -> NeuralGreedy: ...

@overload
def make(name: Literal["neural-ucb"], env: EnvLike, **parameters: object) -> NeuralUCB: ...

@overload
def make(name: Literal["neural-ts"], env: EnvLike, **parameters: object) -> NeuralTS: ...

@overload
def make(name: Literal["policy"], env: EnvLike, **parameters: object) -> PolicyAgent: ...

@overload
def make(name: Literal["in-context"], env: EnvLike, **parameters: object) -> InContext: ...

@overload
def make(name: Literal["random"], env: EnvLike, **parameters: object) -> Random: ...

@overload
def make(name: Literal["oracle"], env: EnvLike, **parameters: object) -> Oracle: ...

@overload
def make(name: Literal["oracle-restart"], env: EnvLike, **parameters: object) -> OracleRestart: ...

@overload
def make(name: Literal["oracle-discount"], env: EnvLike, **parameters: object) -> OracleDiscount: ...

@overload
def make(name: str, env: EnvLike, **parameters: object) -> Agent: ...
