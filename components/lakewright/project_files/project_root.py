"""The root of a Pulumi project, from within a program."""

from __future__ import annotations

from pathlib import Path

import pulumi

from lakewright.project_files import PROJECT_FILES


def project_root(start: Path) -> Path:
    """Return the folder of the nearest Pulumi.yaml. Engines run a program in the folder of its `main`."""
    for folder in (start, *start.parents):
        if any((folder / name).is_file() for name in PROJECT_FILES):
            return folder
    raise pulumi.RunError(f"no Pulumi.yaml in {start} or a folder above it")
