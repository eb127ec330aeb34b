"""`lakewright ui`: show the report in a browser, and keep it up to date."""

from __future__ import annotations

import signal
import sys
from typing import Annotated

import typer

from lakewright.cli.commands.report import Collect, FromFiles
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names, load_project, make_selection

DEFAULT_SECONDS = 300


def ui(
    *,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port. Default: any free port.")] = 0,
    every: Annotated[
        int, typer.Option("--every", min=5, metavar="SECONDS", help="Seconds between two collections.")
    ] = DEFAULT_SECONDS,
    from_files: FromFiles = None,
    collect: Collect = None,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    directory: Directory = HERE,
) -> None:
    """Serve the page of `lakewright report` to a browser on this machine, and collect its sources again and again.

    Prints the address, which holds a token: only the browser that opens it gets data. Ends with Ctrl-C.

    Example: lakewright ui --stack 'team-*' --every 60
    """
    from lakewright.report.live_report import LiveReport  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.report.requests import ReportRequest  # noqa: PLC0415
    from lakewright.report.server import ReportServer  # noqa: PLC0415

    files = [path.absolute() for path in from_files or []]
    project = load_project(directory)
    request = ReportRequest(project, make_selection(stack, label, everything=everything), files, collect)
    report = LiveReport(request, interval=every, progress=_print_progress)
    try:
        server = ReportServer(report, port)
    except OSError as error:
        raise UsageError(f"--port {port}: expected a free port ({error.strerror}); leave it out for any port") from None
    with server:
        report.start()
        print(server.url, flush=True)
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            report.stop()


def _print_progress(line: str) -> None:
    print(f"ui: {line}", file=sys.stderr, flush=True)
