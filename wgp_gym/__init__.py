"""Gymnasium environments for Gaussian-process bandits in a drifting world.

Importing this package registers the ids in `wgp_gym.registration.ENVIRONMENTS`. Its wrappers,
`wgp_gym.wrappers`, are imported when they are first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from wgp_gym.registration import register, register_task
from wgp_gym.seed_ranges import seeds

if TYPE_CHECKING:
    from wgp_gym import wrappers

__all__ = ["__version__", "register", "register_task", "seeds", "wrappers"]

__version__: str


def __getattr__(name: str) -> object:
    """Return `wrappers` or `__version__` when they are asked for: to import or read takes time.

    In a checkout that is not installed the version is "0+unknown".
    """
    if name == "wrappers":
        return import_module("wgp_gym.wrappers")
    if name != "__version__":
        raise AttributeError(f"module 'wgp_gym' has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wgp-gym")
    except PackageNotFoundError:
        return "0+unknown"


register()
