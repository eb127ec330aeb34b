"""Measurements and their helpers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One line of results.json. `ratio` is ours / reference, at most `target`."""

    name: str
    ours: float
    reference: float | None
    target: float | None
    unit: str = "s"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return round(self.ours / self.reference, 3) if self.reference else None

    def to_json(self) -> dict[str, Any]:
        mine = asdict(self)
        rendered = {key: round(value, 3) if isinstance(value, float) else value for key, value in mine.items()}
        return {key: self.ratio if key == "ratio" else rendered[key] for key in _KEYS}


_KEYS = ("name", "ours", "reference", "ratio", "target", "unit", "note")


def read_peak_mib() -> float:
    """Return the largest memory of this process. `ru_maxrss` includes the memory of the process that started it."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


def measure_seconds(action: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def table(rows: list[Row]) -> Table:
    rendered = Table("measurement", "ours", "reference", "ratio", "target", "note", box=None, header_style="bold")
    for row in rows:
        numbers = [f"{row.ours:.2f} {row.unit}", f"{row.reference:.2f} {row.unit}" if row.reference else ""]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        if row.target is not None and row.ratio is not None:
            ratio = f"[{'green' if 0 < row.ratio <= row.target else 'red'}]{ratio}[/]"
        target = "" if row.target is None else f"≤ {row.target:.2f}"
        rendered.add_row(row.name, *numbers, ratio, target, row.note)
    return rendered
