"""The environments: tasks, one batched core, and its single and vector form."""

from wgp_gym.envs.arms import ArmsTask
from wgp_gym.envs.beam import BeamTask
from wgp_gym.envs.knobs import KnobsTask
from wgp_gym.envs.linear import LinearTask
from wgp_gym.envs.lower_bound import LowerBoundTask
from wgp_gym.envs.markov import MarkovTask
from wgp_gym.envs.news import NewsTask
from wgp_gym.envs.pricing import PricingTask
from wgp_gym.envs.random_task import RandomTask
from wgp_gym.envs.sensors import SensorsTask
from wgp_gym.envs.single import BanditEnv
from wgp_gym.envs.synthetic import SyntheticTask
from wgp_gym.envs.table import TableTask, stock_task, table_task
from wgp_gym.envs.task import Task
from wgp_gym.envs.vector import BanditVectorEnv

__all__ = [
    "ArmsTask",
    "BanditEnv",
    "BanditVectorEnv",
    "BeamTask",
    "KnobsTask",
    "LinearTask",
    "LowerBoundTask",
    "MarkovTask",
    "NewsTask",
    "PricingTask",
    "RandomTask",
    "SensorsTask",
    "SyntheticTask",
    "TableTask",
    "Task",
    "stock_task",
    "table_task",
]
