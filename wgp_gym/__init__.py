"""Gymnasium environments for Gaussian-process bandits in a drifting world.

Importing this package registers the ids in `wgp_gym.registration.ENVIRONMENTS`.
"""

from wgp_gym.registration import register

__version__ = "0.1.0"
__all__ = ["__version__", "register"]

register()
