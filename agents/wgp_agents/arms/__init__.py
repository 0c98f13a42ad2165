"""K-armed bandits: arms that have nothing to do with each other."""
