"""Gymnasium environments for Gaussian-process bandits in a drifting world.

Importing this package registers the ids in `wgp_gym.registration.ENVIRONMENTS`.
"""

from wgp_gym.registration import register, register_task
from wgp_gym.seed_ranges import seeds

__all__ = ["__version__", "register", "register_task", "seeds"]

__version__: str


def __getattr__(name: str) -> str:
    """Return `__version__` when it is asked for: reading the metadata takes time.

    In a checkout that is not installed it is "0+unknown".
    """
    if name != "__version__":
        raise AttributeError(f"module 'wgp_gym' has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("wgp-gym")
    except PackageNotFoundError:
        return "0+unknown"


register()
