"""A sample, its population, and the laws of the unsampled counts."""
