"""The groups of `scripts/bench_speed.py`."""
