"""How the fuzzers draw: the same examples each time, each as long as it takes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

HOSTILE = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
