"""Training on Lightning: recipes, settings, checkpoints and sweeps."""
