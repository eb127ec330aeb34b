"""Specs from objects that exist, with what they leave out. Pure functions."""
