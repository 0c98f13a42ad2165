"""A learner that was trained to learn: what it knows of the world's law is in its weights."""

from wgp_agents.algorithms.learned.in_context.agent import InContext

__all__ = ["InContext"]
