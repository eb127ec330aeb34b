"""The command line's exceptions.

UsageError       a wrong command line; exit code 2, as of the Pulumi CLI
PulumiCliError   the Pulumi CLI failed; its exit code
"""

from __future__ import annotations


class UsageError(Exception):
    """The command line is wrong. The message names what is missing or wrong."""

    exit_code = 2


class PulumiCliError(Exception):
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
    return f"{type(error).__name__}: {error} (LAKEWRIGHT_DEBUG=1 shows where)"


def to_usage_error(error: Exception) -> Exception:
    """Return Typer's error of a command line as a UsageError that names the command's help; others unchanged."""
    context = getattr(error, "ctx", None)
    if not hasattr(error, "format_message") or context is None:
        return error
    option = _suggest_option(error)
    # Typer's text would list every option that is a little like it.
    message = str(getattr(error, "message", "")) if option else format_error(error).replace(": Value error, ", ": ")
    message, _, question = message.partition(" Did you mean ")
    message = " ".join(f"{message[:1].lower()}{message[1:]}".split()).rstrip(". ")
    if option or question:
        message += f"; did you mean {question.rstrip('?') or option}?"
        return UsageError(f"{message} See `{context.command_path} --help`")
    return UsageError(f"{message}; see `{context.command_path} --help`")


def _suggest_option(error: Exception) -> str:
    """Return the option that is most like an unknown one; empty for other errors."""
    from difflib import get_close_matches  # noqa: PLC0415 - only for errors

    possibilities: list[str] = getattr(error, "possibilities", None) or []
    return "".join(get_close_matches(str(getattr(error, "option_name", "")), possibilities, 1))
