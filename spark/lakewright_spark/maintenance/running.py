"""Tables that an execution may still be writing: their readers page by files, which compaction would replace."""

from __future__ import annotations

from lakewright_spark.execution_registry.registry import ExecutionRegistry
from lakewright_spark.result_uris import ResultUri
from lakewright_spark.table_identifier import TableIdentifier


def reason_to_wait(table: TableIdentifier, registry: ExecutionRegistry | None) -> str | None:
    """Why a result is not to be compacted; None for other tables, and once its execution is known to have ended."""
    uri = ResultUri.of_table(table.name, table.warehouse)
    if uri is None:
        return None
    run = uri.execution
    record = registry.find(run.workflow, run.execution) if registry else None
    if record is None:
        return f"a result of execution {run.execution}: no registry says that it has ended"
    return None if record.status.ended else f"a result of execution {run.execution}, which is {record.status.value}"
