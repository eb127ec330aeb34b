"""`--json` of the four verbs holds for failures too: whatever goes wrong, one object has its exit and messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typer.core import TyperCommand

from lakewright.cli.errors import told

if TYPE_CHECKING:
    from lakewright_engine.display.report import OperationReport


class Broken(Exception):  # noqa: N818 - named for what happened
    """An operation that broke off by its cause, with what was done until then. Never reaches a person."""

    def __init__(self, report: OperationReport) -> None:
        super().__init__()
        self.report = report


class JsonVerb(TyperCommand):
    """A command with `--json`. A mistake in its own words is told as JSON too, though they could not be parsed."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        as_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except Exception as error:  # noqa: BLE001 - raised again
            _tell(error, as_json=as_json)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:  # noqa: BLE001 - raised again
            _tell(error, as_json=bool(ctx.params.get("as_json")))


def _tell(error: Exception, *, as_json: bool) -> NoReturn:
    """Print the object, and pass the error on to where it ends the process."""
    if isinstance(error, typer.Exit | typer.Abort) or not as_json:
        raise error
    from lakewright_engine.display.report import OperationReport  # noqa: PLC0415 - `--help` needs no engine

    report, cause = OperationReport(), error
    if isinstance(error, Broken) and isinstance(error.__cause__, Exception):
        report, cause = error.report, error.__cause__
    failed = report.to_json({}, getattr(cause, "exit_code", 1))
    failed["messages"] = [*failed["messages"], f"error: {told(cause)}"]
    print(json.dumps(failed, indent=2, ensure_ascii=False))
    raise cause
