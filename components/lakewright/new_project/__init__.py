"""Files of a user's project: the program, its settings, environments, requirements, CI and a test of the specs.

`template` is the project with the sandbox as its environment, and a template of `pulumi new`.
"""
