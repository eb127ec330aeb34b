"""The stack of a command: `lakewright up acme`, `--stack acme`, `LAKEWRIGHT_STACK`, or the selected stack."""

from __future__ import annotations

import os
from difflib import get_close_matches
from enum import Enum
from typing import Any

from lakewright_spark.plain_help import PlainHelpTyper
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typing_extensions import override

from lakewright.cli import completions
from lakewright.cli.default_stack import find_default_stack, find_project
from lakewright.cli.errors import UsageError

_ARGUMENT = "stack_argument"
_GROUP_OPTIONS = {"stack": "--stack", "directory": "-C"}
"""Options of a group, by parameter, that hold for its commands, as options of `pulumi config` do."""


class _Parsing(Enum):
    """The parts of a command line that are parsed."""

    ALL = "all"
    OWN_ARGUMENTS = "own arguments"
    """Everything but the stack as an argument: it is the default stack, or an option names it."""
    OPTIONS = "options"


class StackCommand(TyperCommand):
    """A command that takes the stack of its option `--stack` also as its first argument.

    A required `--stack` defaults to `LAKEWRIGHT_STACK`, else to the selected stack. A repeatable `--stack` also takes
    several arguments, and has no default.
    """

    def __init__(self, *words: Any, **options: Any) -> None:
        """Add the argument. Takes the parameters of the base class."""
        super().__init__(*words, **options)
        self._stack = next(
            (param for param in self.params if isinstance(param, TyperOption) and "--stack" in param.opts), None
        )
        self._needs_stack = self._stack is not None and self._stack.required
        if self._stack is None:
            return
        self._stack.required = False
        is_repeatable = bool(self._stack.multiple)
        self._argument = TyperArgument(
            param_decls=[_ARGUMENT],
            type_descriptor=self._stack.type_descriptor,
            nargs=-1 if is_repeatable else 1,
            metavar="STACK",
            help="Names or patterns of stacks, as --stack." if is_repeatable else "Name of the stack, as --stack.",
            autocompletion=self._complete_first_word,
        )

    def _complete_first_word(self, ctx: Any, _args: list[str], incomplete: str) -> list[str]:
        """Return the stacks, and what the command's own first argument may be, that begin with a text."""
        own_argument = next((param for param in self.params if isinstance(param, TyperArgument)), None)
        items = own_argument.shell_complete(ctx, incomplete) if own_argument else []
        return [*completions.complete_stack(ctx, incomplete), *(item.value for item in items)]

    @override
    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters of what is parsed, by default all."""
        params = super().get_params(ctx)
        parsing = ctx.meta.get(_ARGUMENT, _Parsing.ALL)
        if self._stack is None or parsing is _Parsing.OWN_ARGUMENTS:
            return params
        if parsing is _Parsing.OPTIONS:
            return [param for param in params if not isinstance(param, TyperArgument)]
        return [self._argument, *params]

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line, and find the stack."""
        if self._stack is None:
            return super().parse_args(ctx, args)
        ctx.meta[_ARGUMENT] = _Parsing.OPTIONS
        options, arguments, _ = self.make_parser(ctx).parse_args(args=list(args))
        group_options = _read_group_options(ctx)
        options = group_options | options
        takes_stack = ctx.resilient_parsing or self._takes_stack(options, arguments)
        ctx.meta[_ARGUMENT] = _Parsing.ALL if takes_stack else _Parsing.OWN_ARGUMENTS
        remaining = super().parse_args(ctx, args)
        ctx.meta[_ARGUMENT] = _Parsing.ALL
        _inherit_options(ctx, group_options)
        argument, name = ctx.params.pop(_ARGUMENT, None), str(self._stack.name)
        if self._stack.multiple:
            ctx.params[name] = [*(ctx.params.get(name) or ()), *(argument or ())] or None
        elif argument is not None:
            if ctx.params.get(name) is not None:
                raise UsageError(f"the stack is named twice: `{argument}` and `--stack {ctx.params[name]}`; name one")
            ctx.params[name] = argument
        elif ctx.params.get(name) is None and self._needs_stack and not ctx.resilient_parsing:
            ctx.params[name] = find_default_stack(ctx.command_path, ctx.params.get("directory") or os.curdir)
        return remaining

    def _takes_stack(self, options: dict[str, Any], arguments: list[str]) -> bool:
        """Return whether the first word is the stack.

        It is, if there is one word more than the command has arguments, or if it is the name of a stack.
        """
        own_arguments = [param for param in self.params if isinstance(param, TyperArgument)]
        if not own_arguments:
            return True
        if not arguments or options.get(str(self._stack.name if self._stack else "")) is not None:
            return False
        if all(param.nargs == 1 for param in own_arguments) and len(arguments) > len(own_arguments):
            return True
        required = sum(1 for param in own_arguments if param.required)
        return len(arguments) > required and _is_stack(arguments[0], options.get("directory") or os.curdir)


class StackGroup(TyperGroup):
    """A group that runs without a command, and then takes the stack of its option `--stack` as an argument, too."""

    @override
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass on the first word as the stack if it is not a command."""
        names = self.list_commands(ctx)
        if args and not args[0].startswith("-") and args[0] not in names and not get_close_matches(args[0], names):
            args = [*args[1:], "--stack", args[0]]
        return super().parse_args(ctx, args)


class CommandLine(PlainHelpTyper):
    """A Typer application with commands that take their stack as an argument."""

    @override
    def command(self, *words: Any, **options: Any) -> Any:
        """Return the decorator that adds a command."""
        options["cls"] = options.get("cls") or StackCommand
        return super().command(*words, **options)


def _read_group_options(ctx: Any) -> dict[str, Any]:
    """Return `--stack` and `-C` of the command's group, as in `lakewright config --stack acme get KEY`."""
    group = ctx.parent
    return {name: group.params[name] for name in _GROUP_OPTIONS if group is not None and _is_set(group, name)}


def _inherit_options(ctx: Any, group_options: dict[str, Any]) -> None:
    """Set the options of the group that the command has not. Raises UsageError if both have different values."""
    for name, value in group_options.items():
        if _is_set(ctx, name) and ctx.params[name] != value:
            option = _GROUP_OPTIONS[name]
            raise UsageError(
                f"{ctx.command_path}: {option} is `{value}` before the command and `{ctx.params[name]}` after it;"
                f" pass {option} once"
            )
        ctx.params[name] = value


def _is_set(ctx: Any, name: str) -> bool:
    """Return whether the command line of a context sets a parameter."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _is_stack(name: str, directory: str) -> bool:
    """Return whether a project has a stack or a stack file of a name."""
    from lakewright_engine.model.errors import EngineError  # noqa: PLC0415 - `--help` needs no engine

    project = find_project(directory)
    if project is None:
        return False
    try:
        return project.stack_file(name).is_file() or project.backend().exists(project.name, name)
    except EngineError:  # not a name of stacks, or a backend of the Pulumi CLI
        return False
