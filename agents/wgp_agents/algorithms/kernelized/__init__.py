"""Gaussian-process agents with a fixed or theory-tuned forgetting parameter."""
