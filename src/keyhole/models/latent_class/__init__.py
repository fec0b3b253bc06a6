"""Latent classes: people of a class choose their levels independently."""
