"""`lakewright report`: write one HTML file about all tenants from the JSON of other commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection
from lakewright.report.sources import SourceKind

FromFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--from",
        metavar="FILE",
        help="File with the JSON of a command, or folder of such files; repeatable. No command runs then, unless"
        " --collect names it.",
    ),
]
Collect = Annotated[
    list[SourceKind] | None,
    typer.Option(
        "--collect",
        help="Run this command; repeatable. Default: all but `verify`, which writes probe tables.",
    ),
]


def report(
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder that receives index.html.")],
    from_files: FromFiles = None,
    collect: Collect = None,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
) -> None:
    """Write a page about all tenants: state, drift, checks, isolation, archives, storage, maintenance, shares.

    The page is one file that loads nothing else. It is made from the JSON of other commands, which run unless --from
    names their files. Exit code 1 if a command failed; the page then says why.

    Example: lakewright report --out public
    """
    from lakewright.report.page import render_report  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.report.page_file import write_page  # noqa: PLC0415
    from lakewright.report.requests import ReportRequest  # noqa: PLC0415

    folder, files = out.absolute(), [path.absolute() for path in from_files or []]
    project = load_project(directory)
    selection = make_selection(stack, label, everything=everything)
    request = ReportRequest(project, selection, files, collect)
    model = request.build(lambda line: print(f"report: {line}", file=sys.stderr, flush=True))
    file = write_page(folder / "index.html", render_report(model))
    print(file)
    failures = [source for source in model["sources"] if source["error"]]
    for source in failures:
        print(f"error: {source['command']}: {source['error']}", file=sys.stderr)
    if failures:
        raise typer.Exit(1)
