"""Agents that learn by networks: trained before, or within the episode."""
