"""`lakewright completion`: print the script that completes commands, options and names in a shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """Shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


_ESCAPE_DOLLARS = """\
    # A URN may contain `$`, and bash would read the name of a variable.
    COMPREPLY=( "${COMPREPLY[@]//\\$/\\\\$}" )
    return 0
"""
_KEEP_COLONS = "COMP_WORDBREAKS=${COMP_WORDBREAKS//:}  # a URN is one word"
PROGRAMS = ("lakewright", "lakewright-spark")


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """Print the completion script of a shell, for `lakewright` and `lakewright-spark`.

    bash: put `eval "$(lakewright completion bash)"` into ~/.bashrc. zsh: put `eval "$(lakewright completion zsh)"`
    into ~/.zshrc after `compinit`. fish: write the output to ~/.config/fish/completions/lakewright.fish.

    Example: lakewright completion bash
    """
    from typer.completion import (  # noqa: PLC0415 - `--help` prints no script
        get_completion_script,  # pyright: ignore[reportPrivateImportUsage]
    )

    for program in PROGRAMS:
        variable = f"_{program.replace('-', '_').upper()}_COMPLETE"
        script = get_completion_script(prog_name=program, complete_var=variable, shell=shell.value)
        print(script.replace("    return 0\n", _ESCAPE_DOLLARS) if shell is Shell.BASH else script)
    if shell is Shell.BASH:
        print(_KEEP_COLONS)
