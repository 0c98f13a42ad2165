"""What every family of agents stands on."""
