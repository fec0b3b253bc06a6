"""Files in, coded columns out."""
