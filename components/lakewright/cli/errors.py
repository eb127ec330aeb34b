"""The command line's exceptions, and how it prints errors. `lakewright.errors` draws the tree."""

from __future__ import annotations

from lakewright.errors import LakewrightError


class UsageError(LakewrightError):
    """The command line is wrong. The message names what is missing or wrong."""

    exit_code = 2


NO_MESSAGE = "the Pulumi CLI failed without an error message"


class PulumiCliError(LakewrightError):
    """The Pulumi CLI failed."""

    def __init__(self, message: str, exit_code: int) -> None:
        """Keep the CLI's error lines and its exit code."""
        super().__init__(message)
        self.exit_code = exit_code


def format_error(error: Exception) -> str:
    """Return the message of an error. Unexpected errors are prefixed with their type."""
    if format_message := getattr(error, "format_message", None):  # an error of Typer
        return str(format_message())
    if type(error).__module__.partition(".")[0].startswith("lakewright"):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        from lakewright.environment.extras import explain_missing_package  # noqa: PLC0415 - only for errors

        return explain_missing_package(error)
    return f"{type(error).__name__}: {error} (LAKEWRIGHT_DEBUG=1 shows where)"


def to_usage_error(error: Exception) -> Exception:
    """Return Typer's error of a command line as a UsageError that names the command's help; other errors unchanged."""
    from lakewright_spark.usage_errors import format_usage_error  # noqa: PLC0415 - only for errors

    message = format_usage_error(error) if getattr(error, "ctx", None) is not None else None
    return error if message is None else UsageError(message)
