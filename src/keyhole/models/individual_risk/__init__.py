"""Models of the risk of each record from its own survey weight."""
