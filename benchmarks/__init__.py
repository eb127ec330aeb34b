"""Benchmarks; `make bench` runs them in their own sandbox."""
