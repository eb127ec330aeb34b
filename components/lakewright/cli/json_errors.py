"""Failures under `--json`: one JSON object with exit code and messages for every failure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn

import typer
from typing_extensions import override

from lakewright.cli.errors import format_error, to_usage_error
from lakewright.cli.stack_argument import StackCommand
from lakewright.errors import LakewrightError
from lakewright.names.tenant_parts import add_parts

if TYPE_CHECKING:
    from lakewright_engine.display.report import OperationReport


class InterruptedOperationError(LakewrightError):
    """An operation that failed with its cause, and the report until then. Never shown to users."""

    def __init__(self, report: OperationReport) -> None:
        """Keep the report until the failure."""
        super().__init__()
        self.report = report


class JsonErrorsCommand(StackCommand):
    """A command whose errors are JSON under `--json`, errors in the command line included."""

    @override
    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        as_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except Exception as error:  # noqa: BLE001 - raised again
            _raise_error(to_usage_error(error), as_json=as_json)

    @override
    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:  # noqa: BLE001 - raised again
            _raise_error(error, as_json=bool(ctx.params.get("as_json")))


def _raise_error(error: Exception, *, as_json: bool) -> NoReturn:
    """Print the object, and raise the error again for the code that ends the process."""
    if isinstance(error, typer.Exit | typer.Abort) or not as_json:
        raise error
    from lakewright_engine.display.report import OperationReport  # noqa: PLC0415 - `--help` needs no engine

    report, cause = OperationReport(), error
    if isinstance(error, InterruptedOperationError) and isinstance(error.__cause__, Exception):
        report, cause = error.report, error.__cause__
    failed = report.to_json({}, getattr(cause, "exit_code", 1))
    failed["steps"] = add_parts(failed["steps"])
    failed["messages"] = [*failed["messages"], f"error: {format_error(cause)}"]
    print(json.dumps(failed, indent=2, ensure_ascii=False))
    raise cause
