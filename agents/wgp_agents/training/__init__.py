"""Training policies of stable-baselines3, and their match with the other agents."""
