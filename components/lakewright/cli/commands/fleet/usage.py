"""`lakewright fleet usage`: storage use of many tenants by warehouse and owner."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection
from lakewright.terminal.escaping import escape_line


def usage(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Report storage use by tenant, warehouse and owner: live and reclaimable bytes, tables, files and snapshots.

    Reads the tables' metadata with the identity of the tenants' jobs; no Spark runs. It needs PyIceberg
    (`lakewright-spark[jobs]`), and the secrets that the catalog configurations refer to. Exit code 1 if something could
    not be read.

    Example: lakewright fleet usage --label cost-center=4711 --json
    """
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine

    from lakewright.cli.catalog_config import read_catalog_config  # noqa: PLC0415
    from lakewright.cli.errors import UsageError  # noqa: PLC0415
    from lakewright.fleet.absent_stacks import find_absent_stacks  # noqa: PLC0415
    from lakewright.fleet.progress import format_not_deployed  # noqa: PLC0415
    from lakewright.fleet.selection import select  # noqa: PLC0415
    from lakewright.fleet.usage import compute_exit_code, format_usage, measure_usage, to_usage_json  # noqa: PLC0415

    project = load_project(directory)
    stacks = select(project, make_selection(stack, label, everything=everything))
    absent = [stack.name for stack in find_absent_stacks(project, stacks)]
    usages = measure_usage(stacks, lambda name: read_catalog_config(project, name), (EngineError, UsageError), absent)
    if as_json:
        print(json.dumps(to_usage_json(usages), indent=2, ensure_ascii=False))
    else:
        print("\n".join(format_usage(usages)))
        for usage_entry in usages:
            if usage_entry.problem:
                print(f"error: {usage_entry.stack.name}: {escape_line(usage_entry.problem)}", file=sys.stderr)
        if absent:
            print(format_not_deployed(absent), file=sys.stderr)
    raise typer.Exit(compute_exit_code(usages))
