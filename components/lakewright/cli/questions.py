"""Values that commands ask for at a terminal if no option gives them."""

from __future__ import annotations

import sys
from collections.abc import Callable

import typer

from lakewright.cli.errors import UsageError


def ask(
    option_value: str | None,
    question: str,
    default: str | None = None,
    *,
    command: str,
    find_problem: Callable[[str], str] = lambda _: "",
) -> str:
    """Return the option's value, else the user's input, else the default.

    Args:
        option_value: Value of the option; None if it is not given.
        question: Text of the question.
        default: Value of a user who enters none.
        command: The command whose help lists the options.
        find_problem: Returns why the input is invalid, else an empty text. The user is asked again. Values of options
            are not checked.

    Raises:
        UsageError: There is no default, and no terminal to ask at.
    """
    if option_value is None and sys.stdin.isatty():
        return _ask_until_valid(question, default, find_problem)
    value = default if option_value is None else str(option_value)
    if value is None:
        raise UsageError(
            f"no value for the {question}, and no terminal to ask at; give it as an option (`{command} --help`)"
        )
    return value


def _ask_until_valid(question: str, default: str | None, find_problem: Callable[[str], str]) -> str:
    while problem := find_problem(reply := str(typer.prompt(question, default=default))):
        print(problem, file=sys.stderr)
    return reply
