"""A run over many stacks: states, scanners, and steps that process the findings."""
