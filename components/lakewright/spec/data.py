"""What is declared inside the warehouses: policies and the upkeep of tables."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from lakewright.spec.part import Part
from lakewright.spec.quantity import FileSize

_CRON_FIELD = re.compile(r"[\d*/,-]+|[A-Za-z]{3}(-[A-Za-z]{3})?")


def _table_name(value: str) -> str:
    if value.count(".") < 2 or not all(value.split(".")):
        raise ValueError("expected WAREHOUSE.NAMESPACE.TABLE, the namespace perhaps of several levels")
    return value


def _cron(value: str) -> str:
    fields = value.split()
    if len(fields) != 5 or not all(_CRON_FIELD.fullmatch(field) for field in fields):
        raise ValueError("expected a cron schedule of five fields, such as `0 2 * * *` (UTC)")
    return value


class Retention(Part):
    """Rows older than this are deleted."""

    keep: Annotated[int, Field(ge=1)]
    unit: Literal["hour", "day", "month", "year"] = "day"
    column: str
    pattern: str | None = None
    """Format of a text column that holds the date."""


class History(Part):
    """Which snapshots are kept: none older than the age, but at least so many versions."""

    max_age_days: Annotated[int, Field(ge=1, le=3)] | None = None
    versions: Annotated[int, Field(ge=2, le=100)] | None = None

    @model_validator(mode="after")
    def _something(self) -> "History":
        if self.max_age_days is None and self.versions is None:
            raise ValueError("expected `max_age_days`, `versions` or both")
        return self


class TablePolicies(Part):
    retention: Retention | None = None
    history: History | None = None


class PolicySpec(TablePolicies):
    """Policies of the tables that match; `*` stands for any text within a level."""

    match: Annotated[str, AfterValidator(_table_name)]


class OrphanFiles(Part):
    older_than_days: Annotated[int, Field(ge=1)] = 7


class Compaction(Part):
    target_file_size: FileSize = "512MiB"
    min_input_files: Annotated[int, Field(ge=2)] = 5


class MaintenanceSpec(Part):
    """The upkeep of a tenant's tables."""

    schedule: Annotated[str, AfterValidator(_cron)]
    orphan_files: OrphanFiles | None = None
    compaction: Compaction | None = None
