"""Who in this file could be recognised, how surely, and what would help."""
