"""Files that a project receives: CI workflows, container files, the platform program, the policy pack, schemas.

The entries are links to folders of Lakewright's repository; a wheel contains the files.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
"""Folder with the subfolders `ci`, `images`, `platform`, `policy` and `schema`."""
