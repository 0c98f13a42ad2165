"""References: random play, and agents that read the truth."""
