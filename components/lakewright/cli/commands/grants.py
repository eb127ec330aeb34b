"""`lakewright grants` and `lakewright expire`: who has access until when, and the removal of what has ended.

`expire` also purges archived warehouses.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from lakewright.cli.deployed_stacks import open_deployed_stacks
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, Everything, Labels, Names
from lakewright.validation.moment import format_moment, parse_duration, read_clock

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime, timedelta

    from lakewright.deletions.archive_purging import ArchiveStatus
    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.states import StateReader
    from lakewright.shares.expiry import StackExpiry
    from lakewright.shares.share import Share

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def grants(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    expiring: Annotated[
        str | None,
        typer.Option("--expiring", help="Only what has ended, or ends within this time, such as 12h, 30d or 2w."),
    ] = None,
    directory: Directory = HERE,
    as_json: AsJson = False,
) -> None:
    """List grants, members of roles and shares of stacks, as their states have them, with their ends.

    No server is asked. An ended entry is listed until the next `up`.

    Example: lakewright grants --all --expiring 30d
    """
    period = _parse_period(expiring)
    _, selected, states = open_deployed_stacks(stack, label, directory, everything=everything)
    shares, problems = _list_shares(selected, states)
    now = read_clock()
    if period is not None:
        shares = [share for share in shares if share.expires_within(period, now)]
    from lakewright.shares.share import sort_by_end  # noqa: PLC0415 - `--help` needs none of it
    from lakewright.terminal.json_document import make_head  # noqa: PLC0415

    shares = sort_by_end(shares)
    exit_code = 1 if problems else 0
    if as_json:
        entries = [share.to_json(now) for share in shares]
        document = {**make_head("grants"), "exit": exit_code, "shares": entries, "problems": problems}
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        _print_shares(shares, problems, now)
    raise typer.Exit(exit_code)


def expire(
    *,
    stack: Names = None,
    label: Labels = None,
    everything: Everything = False,
    purge: Annotated[
        list[str] | None,
        typer.Option(
            "--purge",
            metavar="WAREHOUSE",
            help="Permit the due purge of an archive whose destroyed stack was in another backend, or whose backend"
            " reports no updates. Refused unless exactly one stack is selected. Repeatable.",
        ),
    ] = None,
    directory: Directory = HERE,
    as_json: AsJson = False,
) -> None:
    """Remove grants and members of roles that have reached their `until`, and purge archived warehouses.

    A purge comes at the end of `purge_after`, and at least 7 days after a run of this command has announced it. Reads
    the states of the stacks and changes none. Removes nothing else, and nothing of other stacks. Stacks that are being
    updated are left to the next run.

    Exit codes: 0 all that has ended is removed; 1 something could not be removed.

    Example: lakewright expire --all
    """
    project, selected, states = open_deployed_stacks(stack, label, directory, everything=everything)
    if purge and len(selected) != 1:
        raise UsageError(
            f"expected exactly one deployed stack with --purge, found {len(selected)}: select the stack of the archive"
            " with --stack NAME. Nothing was removed or purged"
        )
    from lakewright.shares.expiry import compute_exit_code, expire_shares, to_json  # noqa: PLC0415

    expiries = expire_shares(project, selected, reader=states, permitted=purge or ())
    if as_json:
        print(json.dumps(to_json(expiries), indent=2, ensure_ascii=False))
    else:
        _print_expiries(expiries)
    raise typer.Exit(compute_exit_code(expiries))


def _parse_period(expiring: str | None) -> timedelta | None:
    try:
        return None if expiring is None else parse_duration(expiring)
    except ValueError as error:
        raise UsageError(f"--expiring {expiring}: {error}") from None


def _list_shares(selected: Sequence[SelectedStack], states: StateReader) -> tuple[list[Share], list[str]]:
    """Return the shares of stacks, and the problems of states that cannot be read."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415

    from lakewright.shares.recorded_shares import list_shares  # noqa: PLC0415

    shares: list[Share] = []
    problems: list[str] = []
    for stack in selected:
        try:
            shares += list_shares(stack, states.read(stack.name))
        except EngineError as error:
            problems.append(str(error))
    return shares, problems


def _print_shares(shares: Sequence[Share], problems: Sequence[str], now: datetime) -> None:
    from rich.markup import escape  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    from lakewright.terminal.console import open_console  # noqa: PLC0415
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    console = open_console()
    table = Table("stack", "kind", "principal", "access", "on", "until", "state")
    for share in shares:
        ends = "" if share.until is None else "ended" if share.has_ended(now) else "in force"
        cells = (share.stack, share.kind.value, share.principal, share.access, share.on, share.until or "", ends)
        table.add_row(*(escape(escape_line(cell)) for cell in cells))
    if table.row_count:
        console.print(table)
    ended = sum(share.has_ended(now) for share in shares)
    console.print(f"{len(shares)} entries, {ended} of them ended." if shares else "No entry.")
    for problem in problems:
        console.print(f"error: {escape(escape_line(problem))}", soft_wrap=True)


def _print_expiries(expiries: Sequence[StackExpiry]) -> None:
    from lakewright.terminal.escaping import escape_line  # noqa: PLC0415

    for expiry in expiries:
        for resource, principal in expiry.removed:
            print(escape_line(f"{expiry.stack}: removed {principal} from {resource}"))
        for archive in expiry.archives:
            print(escape_line(f"{expiry.stack}: {_describe_archive(archive)}"))
        for problem in expiry.problems:
            print(escape_line(f"error: {expiry.stack}: {problem}"))
    if not any(expiry.removed or expiry.archives or expiry.problems for expiry in expiries):
        print("Nothing has ended.")


def _describe_archive(archive: ArchiveStatus) -> str:
    title = f"archived warehouse `{archive.warehouse}`"
    if archive.purge_at is None:
        return f"{title} is never purged"
    purge_at = format_moment(archive.purge_at)
    match archive.state.value:
        case "purged":
            return f"purged {title} with its files"
        case "announced":
            return f"{title} will be purged, not before {purge_at}. To keep it, declare it with `adopt: true`"
        case "refused":
            return f"{title} is not purged"
        case _:
            return f"{title} is kept until {purge_at}"
