"""A spec with examples of all sections, in `example.yaml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lakewright.validation.yaml_text import load_yaml

_FILE = Path(__file__).with_name("example.yaml")


def example_spec() -> Any:
    """Return the example."""
    return load_yaml(_FILE.read_text(encoding="utf-8"))
