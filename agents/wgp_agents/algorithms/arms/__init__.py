"""K-armed agents."""
