"""The fence of a migration: table properties that forbid to delete files while two catalogs have the same table.

The properties are in the table's metadata file, so both catalogs have them as soon as the file is registered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lakewright_spark.errors import MigrationError
from lakewright_spark.policies.model import Lock, TablePolicies, to_property_name

FENCE = "lakewright.migration"
"""Property with the run of the migration and the earlier values of the fence's other properties, as JSON."""
FINISHED = f"{FENCE}.finished"
"""Property of what a finished copy, or a promotion of a standby, left in the source: run and target as JSON."""
GC = "gc.enabled"
"""Iceberg's switch: clients expire no snapshots, remove no orphan files and refuse to purge if it is `false`."""
DELETE_METADATA = "write.metadata.delete-after-commit.enabled"
"""Iceberg's switch. If it were on, commits in one catalog would delete the metadata file of the other catalog."""
LOCK = to_property_name("lock")
HELD = (GC, DELETE_METADATA, LOCK)
"""Properties that `hold` sets."""


@dataclass(frozen=True)
class Fence:
    """A fence that a table has."""

    run: str
    """ID of the migration, as in its ledger."""
    previous: Mapping[str, str | None]
    """Values of the changed properties before the migration; None for a property that was not set."""
    was_protected: bool = False
    """Whether the source refused to drop the table before the migration."""


def build_fence(properties: Mapping[str, str], run: str, now: datetime, *, was_protected: bool) -> dict[str, str]:
    """Return the properties that set the fence on a table with these properties."""
    mark = {"run": run, "previous": read_held(properties), "was_protected": was_protected}
    message = f"migration {run}; `lakewright-spark migrate` with --finish removes this lock"
    return {**hold(message, now), FENCE: json.dumps(mark)}


def build_view_fence(run: str) -> dict[str, str]:
    """Return the property that a view has in the source from the cut-over to the undo. A view has no files to keep."""
    return {FENCE: json.dumps({"run": run, "previous": {}})}


def hold(message: str, now: datetime) -> dict[str, str]:
    """Return the properties that keep clients and maintenance from deleting a table's files."""
    return {GC: "false", DELETE_METADATA: "false", **TablePolicies(lock=Lock(message=message, since=now)).properties()}


def read_held(properties: Mapping[str, str | None]) -> dict[str, str | None]:
    """Return the values of the properties that `hold` changes; None for a property that is not set."""
    return {name: properties.get(name) for name in HELD}


def release(previous: Mapping[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """Return the properties to set and the properties to remove, to end a hold."""
    values = {name: value for name, value in previous.items() if value is not None}
    return values, [name for name, value in previous.items() if value is None]


def read_fence(properties: Mapping[str, str]) -> Fence | None:
    """Return the fence of a table with these properties; None if it has no fence.

    Raises:
        MigrationError: The property cannot be read.
    """
    text = properties.get(FENCE)
    if text is None:
        return None
    try:
        document = json.loads(text)
        previous = read_held(document["previous"])
        return Fence(document["run"], previous, was_protected=bool(document.get("was_protected")))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise MigrationError(f"property {FENCE}: expected the JSON of a migration's fence, found other text") from None


def remove_fence(fence: Fence) -> tuple[dict[str, str], list[str]]:
    """Return the properties to set and the properties to remove, so that a table is as before the migration."""
    values, removed = release(fence.previous)
    return values, [FENCE, *removed]


@dataclass(frozen=True)
class FinishedCopy:
    """The mark of a table or view that the source keeps under another name, since another catalog has its copy."""

    run: str
    """ID of the migration, as in its ledger; empty after the promotion of a standby."""
    target: str
    """Warehouse and catalog that have the copy, as text."""

    def to_property(self) -> dict[str, str]:
        """Return the property that marks the table."""
        return {FINISHED: json.dumps({"run": self.run, "target": self.target})}

    def describe(self) -> str:
        """Return why the source keeps the table or view.

        >>> FinishedCopy("", "warehouse new").describe()
        'promoted to warehouse new'
        """
        if not self.run:
            return f"promoted to {self.target}"
        return f"moved by a finished migration ({self.run}) to {self.target}"


def read_finished_copy(properties: Mapping[str, str]) -> FinishedCopy | None:
    """Return the mark of a table with these properties; None without a mark that can be read.

    >>> read_finished_copy(FinishedCopy("1f0a", "warehouse new").to_property())
    FinishedCopy(run='1f0a', target='warehouse new')
    """
    try:
        document = json.loads(properties.get(FINISHED, "null"))
        return FinishedCopy(str(document["run"]), str(document["target"]))
    except (ValueError, KeyError, TypeError):
        return None


def describe_fence(properties: Mapping[str, str]) -> str | None:
    """Return which migration has a table or view with these properties; None if it has no fence.

    Raises:
        MigrationError: The fence cannot be read.
    """
    fence = read_fence(properties)
    return f"it belongs to migration {fence.run}; finish or undo the migration first" if fence else None


def describe_holder(properties: Mapping[str, str]) -> str | None:
    """Return which migration or promotion has a table or view that its users do not have; None if none has it.

    Raises:
        MigrationError: The fence cannot be read.
    """
    mark = read_finished_copy(properties)
    return f"it was {mark.describe()}" if mark else describe_fence(properties)


def refuse_taken(name: str, properties: Mapping[str, str], run: str) -> None:
    """Raise MigrationError if a promotion or another migration has taken a table or view from the source's users."""
    fence = read_fence(properties)
    if fence and fence.run == run:
        return
    mark = read_finished_copy(properties)
    holder = f"it was {mark.describe()}" if mark and mark.run != run else describe_fence(properties)
    if holder:
        raise MigrationError(f"{name}: {holder}. Nothing was changed")


def keep_fence(values: Mapping[str, str], properties: Mapping[str, str]) -> dict[str, str]:
    """Return the property values to set on a table without the properties that its fence holds."""
    if FENCE not in properties:
        return dict(values)
    return {name: value for name, value in values.items() if name not in HELD}


def refuse_to_drop(table: str, properties: Mapping[str, str]) -> None:
    """Raise MigrationError if a migration has fenced the table, since another catalog uses its files."""
    fence = read_fence(properties)
    if fence is not None:
        raise MigrationError(
            f"{table} is not dropped: migration {fence.run} has it in two catalogs, and a drop deletes the files of "
            "both. Run `lakewright-spark migrate` with --finish or --undo first"
        )
