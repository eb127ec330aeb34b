"""The text of usage errors, the same for `lakewright` and `lakewright-spark`."""

from __future__ import annotations

from difflib import get_close_matches


def format_usage_error(error: Exception) -> str | None:
    """Return an error of Typer in one line, with what the user may have meant; None for other errors.

    Args:
        error: The error. With its context, the line names the help of the command.
    """
    if not hasattr(error, "format_message"):
        return None
    option = _suggest_option(error)
    # Typer's text would list every option that is a little like it.
    message = str(getattr(error, "message", "") if option else getattr(error, "format_message")())  # noqa: B009 - untyped
    message = message.replace(": Value error, ", ": ")
    message, _, question = message.partition(" Did you mean ")
    message = " ".join(f"{message[:1].lower()}{message[1:]}".split()).rstrip(". ").removeprefix("invalid value: ")
    context = getattr(error, "ctx", None)
    if context is None:
        return message
    if option or question:
        message += f"; did you mean {question.rstrip('?') or option}?"
        return f"{message} See `{context.command_path} --help`"
    return f"{message}; see `{context.command_path} --help`"


def _suggest_option(error: Exception) -> str:
    """Return the option that is most like an unknown option; empty for other errors."""
    possibilities: list[str] = getattr(error, "possibilities", None) or []
    return "".join(get_close_matches(str(getattr(error, "option_name", "")), possibilities, 1))
