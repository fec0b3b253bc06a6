"""Who shares a combination."""
