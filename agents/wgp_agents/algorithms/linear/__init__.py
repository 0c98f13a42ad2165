"""Linear bandits: rewards that are linear in the features of an arm."""
