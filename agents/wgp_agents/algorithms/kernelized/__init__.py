"""Gaussian-process agents that are told how fast to forget."""
