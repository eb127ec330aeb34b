"""One run over many stacks: states, scanners, and what is made of the findings."""
