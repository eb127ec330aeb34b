"""Carry out the steps of a deployment, each on one resource."""
