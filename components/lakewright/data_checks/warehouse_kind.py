"""Evaluate the checks of a warehouse: the bytes of its live files, or of everything under its key prefix."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from lakewright.data_checks.result import NotEvaluatedError, Verdict
from lakewright.data_checks.session import CONCURRENT_LOADS, CheckSession
from lakewright.data_checks.snapshots import find_current_snapshot, read_total
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.names.table_name import QualifiedName
from lakewright.spec.data_check import WarehouseCheck
from lakewright.validation.quantity import parse_bytes

MAX_NAMED_TABLES = 3
"""Tables that a message names."""


def format_title(check: WarehouseCheck) -> str:
    """Return what is checked."""
    return f"warehouse {check.warehouse}"


def evaluate(check: WarehouseCheck, session: CheckSession) -> Iterator[Verdict]:
    """Yield whether the warehouse is small enough."""
    max_bytes = parse_bytes(check.max_bytes)
    expected = f"at most {check.max_bytes} {check.of}"
    if check.of == "stored":
        size, is_whole = _measure_stored(check.warehouse, max_bytes, session)
        text = format_size(size) if is_whole else f"more than {check.max_bytes}"
        yield Verdict.from_evaluation("max_bytes", expected, text, holds=size <= max_bytes)
        return
    size, count, uncounted = _measure_live(check.warehouse, session)
    text = f"{format_size(size)} in {count} tables"
    if uncounted and size <= max_bytes:
        names = ", ".join(uncounted[:MAX_NAMED_TABLES])
        text = f"at least {text}; the summaries of {len(uncounted)} tables have no `total-files-size`: {names}"
        yield Verdict("max_bytes", expected, text, "not evaluated")
        return
    yield Verdict.from_evaluation("max_bytes", expected, text, holds=size <= max_bytes)


def format_size(amount: int) -> str:
    """Return bytes with a binary unit, rounded to a tenth: `1.5GiB`."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{amount}B" if unit == "B" else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}TiB"


def _measure_live(warehouse: str, session: CheckSession) -> tuple[int, int, list[str]]:
    """Return the bytes of all tables' current snapshots, the number of tables, and the tables of unknown size."""
    warehouse_tables = session.list_tables(warehouse)

    def read_size(name: QualifiedName) -> int | None:
        metadata = session.load_metadata(name)
        snapshot = find_current_snapshot(metadata) if metadata else None
        return read_total(snapshot, "total-files-size") if snapshot else 0

    names = [QualifiedName(warehouse, table.namespace, table.name) for table in warehouse_tables]
    with ThreadPoolExecutor(CONCURRENT_LOADS) as pool:
        sizes = dict(zip(names, pool.map(read_size, names), strict=True))
    known_size = sum(size for size in sizes.values() if size is not None)
    return known_size, len(names), [str(name) for name, size in sizes.items() if size is None]


def _measure_stored(warehouse: str, max_bytes: int, session: CheckSession) -> tuple[int, bool]:
    """Return the bytes of all object versions under the warehouse's prefix, and whether all versions were listed."""
    bucket, prefix = session.find_bucket(warehouse)
    size = 0
    try:
        if not own_bucket.exists(bucket):
            raise NotEvaluatedError(f"{bucket.where} does not exist, or the stack's identity may not see it")
        with own_bucket.raise_uncounted(bucket):
            for entry in own_bucket.entries(
                own_bucket.open_client(bucket), bucket.bucket, f"{prefix}/" if prefix else ""
            ):
                size += entry.size
                if size > max_bytes:
                    return size, False
    except CannotCountError as error:
        raise NotEvaluatedError(str(error)) from None
    return size, True
