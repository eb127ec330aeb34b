"""`lakewright completion`: print the script that completes commands, options, stacks and labels in a shell."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class Shell(StrEnum):
    """Shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


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
        print(get_completion_script(prog_name=program, complete_var=variable, shell=shell.value))
