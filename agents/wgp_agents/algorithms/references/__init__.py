"""References: random play, and what reads the truth."""
