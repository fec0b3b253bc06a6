"""Synthetic microdata, its disclosure risk and its utility."""
