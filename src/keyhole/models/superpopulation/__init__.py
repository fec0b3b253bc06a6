"""Models of the size index alone: every sample unique is alike."""
