"""The Lancaster additive model: independence plus the sum of the two-way (and three-way) interactions."""
