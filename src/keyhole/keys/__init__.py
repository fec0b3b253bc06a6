"""Which variables an intruder may know."""
