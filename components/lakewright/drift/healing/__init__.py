"""Revert drift by plans that are limited to the drifted resources."""
