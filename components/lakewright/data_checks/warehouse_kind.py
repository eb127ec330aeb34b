"""Evaluate the checks of a warehouse: the bytes of its live files, or of everything under its key prefix."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from lakewright.data_checks.errors import NotEvaluatedError
from lakewright.data_checks.result import Verdict
from lakewright.data_checks.session import CheckSession
from lakewright.data_checks.snapshots import current_snapshot, total
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.names.table_name import QualifiedName
from lakewright.spec.monitoring.warehouse_check import WarehouseCheck
from lakewright.validation.quantity import parse_bytes

CONCURRENT_LOADS = 8
NAMED = 3
"""Tables that a message names."""


def title(check: WarehouseCheck) -> str:
    """Return what is checked."""
    return f"warehouse {check.warehouse}"


def evaluate(check: WarehouseCheck, session: CheckSession) -> Iterator[Verdict]:
    """Yield whether the warehouse is small enough."""
    most = parse_bytes(check.max_bytes)
    expected = f"at most {check.max_bytes} {check.of}"
    if check.of == "stored":
        found, is_whole = _stored(check.warehouse, most, session)
        text = size_text(found) if is_whole else f"more than {check.max_bytes}"
        yield Verdict.of("max_bytes", expected, text, holds=found <= most)
        return
    found, count, uncounted = _live(check.warehouse, session)
    text = f"{size_text(found)} in {count} tables"
    if uncounted and found <= most:
        names = ", ".join(uncounted[:NAMED])
        text = f"at least {text}; the summaries of {len(uncounted)} tables have no `total-files-size`: {names}"
        yield Verdict("max_bytes", expected, text, "not evaluated")
        return
    yield Verdict.of("max_bytes", expected, text, holds=found <= most)


def size_text(amount: int) -> str:
    """Return bytes with a binary unit, rounded to a tenth: `1.5GiB`."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{amount}B" if unit == "B" else f"{size:.1f}{unit}"
        size /= 1024
    return f"{size:.1f}TiB"


def _live(warehouse: str, session: CheckSession) -> tuple[int, int, list[str]]:
    """Return the bytes of all tables' current snapshots, the number of tables, and those whose size is unknown."""
    listed = session.tables_in(warehouse)

    def size(name: QualifiedName) -> int | None:
        metadata = session.metadata(name)
        snapshot = current_snapshot(metadata) if metadata else None
        return total(snapshot, "total-files-size") if snapshot else 0

    names = [QualifiedName(warehouse, table.namespace, table.name) for table in listed]
    with ThreadPoolExecutor(CONCURRENT_LOADS) as pool:
        sizes = dict(zip(names, pool.map(size, names), strict=True))
    known = sum(found for found in sizes.values() if found is not None)
    return known, len(names), [str(name) for name, found in sizes.items() if found is None]


def _stored(warehouse: str, most: int, session: CheckSession) -> tuple[int, bool]:
    """Return the bytes of all object versions under the warehouse's prefix, and whether all of them were listed."""
    bucket, prefix = session.bucket_of(warehouse)
    found = 0
    try:
        if not own_bucket.exists(bucket):
            raise NotEvaluatedError(f"{bucket.where} does not exist, or the stack's identity may not see it")
        with own_bucket.listing(bucket):
            for entry in own_bucket.entries(
                own_bucket.client_of(bucket), bucket.bucket, f"{prefix}/" if prefix else ""
            ):
                found += entry.size
                if found > most:
                    return found, False
    except CannotCountError as error:
        raise NotEvaluatedError(str(error)) from None
    return found, True
