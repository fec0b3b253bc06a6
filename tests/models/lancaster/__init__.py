"""Tests of the Lancaster additive model."""
