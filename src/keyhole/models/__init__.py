"""One folder per idea in the literature."""
