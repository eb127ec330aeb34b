"""Resources of a stack, their property values and names, and the errors of the engine."""
