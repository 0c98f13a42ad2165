"""The harness: rollouts, experiments, statistics and pictures. It knows the agent contract only."""
