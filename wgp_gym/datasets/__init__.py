"""Tables of times x arms: the embedded data sets, and any CSV file of that shape."""

from wgp_gym.datasets.table import DATASETS, Table, read_table

__all__ = ["DATASETS", "Table", "read_table"]
