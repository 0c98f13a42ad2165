"""Tables of times x arms: the embedded data sets, and any CSV file of that shape."""

from wgp_gym.datasets.source import DATASETS, locate
from wgp_gym.datasets.table import Table, read_table

__all__ = ["DATASETS", "Table", "locate", "read_table"]
