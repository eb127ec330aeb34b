"""A process per project that has everything imported: `lakewright` hands a command to it instead of importing again.

`client` is what a command runs first. `process` waits and forks one child per command; `operation` is that child.
"""
