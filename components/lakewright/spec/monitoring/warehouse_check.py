"""Assertions about a warehouse: the size of its data has a limit."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator

from lakewright.validation.quantity import FileSize, text_of_number
from lakewright.validation.strict_model import StrictModel


class WarehouseCheck(StrictModel):
    """A warehouse holds at most `max_bytes` bytes."""

    warehouse: str
    max_bytes: Annotated[FileSize, BeforeValidator(text_of_number)]
    """Most bytes: `500GiB`."""
    of: Literal["live", "stored"] = "live"
    """`live`: the files of all tables' current snapshots. `stored`: all object versions under the warehouse's key
    prefix, with old snapshots, metadata, orphan files and files of dropped tables."""
