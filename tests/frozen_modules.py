"""Imported last by a process that is forked: what it has imported is shared with its forks.

A garbage collection in a fork writes to every object that it visits, and each page that is written to is copied.
"""

from lakewright_sandbox.runtime.garbage import exclude_imported_objects

exclude_imported_objects()
