"""Plain versions of models from the literature, to compare the package's own models with."""
