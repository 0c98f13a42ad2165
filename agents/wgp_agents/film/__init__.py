"""Films of a learner's posterior, for talks."""

from wgp_agents.film.film import film

__all__ = ["film"]
