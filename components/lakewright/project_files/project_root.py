"""The root of a Pulumi project, from within a program."""

from __future__ import annotations

from pathlib import Path

import pulumi


def project_root(start: Path) -> Path:
    """Return the folder of the nearest Pulumi.yaml. Engines run a program in the folder of its `main`."""
    for folder in (start, *start.parents):
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise pulumi.RunError(f"no Pulumi.yaml in {start} or a folder above it")
