"""Agents that need no variation budget."""
