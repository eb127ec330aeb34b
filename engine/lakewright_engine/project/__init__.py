"""Pulumi.yaml and the configuration of stacks."""
