"""A process per project that has everything imported: `lakewright` hands a command to it instead of importing again.

`client` runs first in a command. `process` waits and forks one child per command; `operation` is that child.
"""
