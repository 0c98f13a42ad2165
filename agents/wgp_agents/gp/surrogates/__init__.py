"""Surrogates: the posteriors of B learners."""
