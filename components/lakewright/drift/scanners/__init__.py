"""Scanners: each compares the objects of one kind of server with the states of all stacks."""
