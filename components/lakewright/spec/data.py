"""The upkeep of a tenant's tables."""

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from lakewright.spec.part import Part
from lakewright.spec.quantity import FileSize

_CRON_FIELD = re.compile(r"[\d*/,-]+|[A-Za-z]{3}(-[A-Za-z]{3})?")


def _cron(value: str) -> str:
    fields = value.split()
    if len(fields) != 5 or not all(_CRON_FIELD.fullmatch(field) for field in fields):
        raise ValueError("expected a cron schedule of five fields, such as `0 2 * * *` (UTC)")
    return value


class OrphanFiles(Part):
    older_than_days: Annotated[int, Field(ge=1)] = 7


class Compaction(Part):
    target_file_size: FileSize = "512MiB"
    min_input_files: Annotated[int, Field(ge=2)] = 5


class MaintenanceSpec(Part):
    """When jobs see to the tenant's tables, and what they do by default."""

    schedule: Annotated[str, AfterValidator(_cron)]
    orphan_files: OrphanFiles | None = None
    compaction: Compaction | None = None
