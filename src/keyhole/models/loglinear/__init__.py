"""Hierarchical log-linear models: the logarithm of a cell's mean as a sum of interactions of the keys."""
