"""The environments: tasks, one batched core, and its single and vector form."""

from wgp_gym.envs.single import BanditEnv
from wgp_gym.envs.synthetic import SyntheticTask
from wgp_gym.envs.table import TableTask, stock_task, table_task
from wgp_gym.envs.task import Task
from wgp_gym.envs.vector import BanditVectorEnv

__all__ = [
    "BanditEnv",
    "BanditVectorEnv",
    "SyntheticTask",
    "TableTask",
    "Task",
    "stock_task",
    "table_task",
]
