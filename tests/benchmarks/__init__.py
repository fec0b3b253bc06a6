"""Tests of what the benchmarks compare with."""
