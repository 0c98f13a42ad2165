"""Agents trained by stable-baselines3 and sb3-contrib (the extra `rl`)."""

from wgp_agents.algorithms.learned.sb3.agent import SB3Agent

__all__ = ["SB3Agent"]
