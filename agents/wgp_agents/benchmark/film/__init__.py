"""Films of a learner's posterior, for talks."""

from wgp_agents.benchmark.film.film import film

__all__ = ["film"]
