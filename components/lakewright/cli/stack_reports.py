"""Reports of `lakewright-spark` on the stacks of a project, with their catalog configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.spark_reports import SparkReport


def read_stack_reports(
    project: PulumiProject, command: Sequence[str], stacks: Sequence[SelectedStack], absent: Collection[str] = ()
) -> list[SparkReport]:
    """Return the reports on stacks, in their order. A configuration that cannot be read is a problem of its stack.

    Args:
        project: The project of the stacks.
        command: Words of the command of `lakewright-spark`, which has the option `--configs`.
        stacks: The stacks.
        absent: Names of stacks that the backend does not have.
    """
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs none of it

    from lakewright.cli.catalog_config import read_catalog_config  # noqa: PLC0415
    from lakewright.cli.errors import UsageError  # noqa: PLC0415
    from lakewright.fleet.spark_reports import read_spark_reports  # noqa: PLC0415

    errors = (EngineError, UsageError)
    return read_spark_reports(command, stacks, lambda name: read_catalog_config(project, name), errors, absent)
