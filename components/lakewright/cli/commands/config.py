"""`lakewright config`: a stack's settings, and with `--format` the catalog configuration of its jobs."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer

from lakewright.cli.config_formats.registry import FormatName
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, load_project
from lakewright.cli.stack_argument import CommandLine, StackGroup, find_default_stack

app = CommandLine(add_completion=False, cls=StackGroup)

Path_ = Annotated[bool, typer.Option("--path", help="KEY is a path into a value: `tree.leaf[0]`.")]
Key = Annotated[str, typer.Argument(help="NAME, or NAMESPACE:NAME for a namespace other than the project's.")]


@app.callback(invoke_without_command=True)
def config(
    context: typer.Context,
    *,
    stack: Annotated[str | None, typer.Option("--stack", "-s", help="Name of the stack.")] = None,
    job_format: Annotated[
        FormatName | None, typer.Option("--format", help="Print the catalog configuration of jobs in this format.")
    ] = None,
    directory: Directory = HERE,
) -> None:
    """Print a stack's settings (secrets masked), or with --format the catalog configuration of its jobs.

    Example: lakewright config --stack acme --format spark
    """
    if context.invoked_subcommand is not None:
        return
    stack = stack or find_default_stack("lakewright config", directory)
    if job_format is not None:
        from lakewright.cli.catalog_config import print_config  # noqa: PLC0415 - slow to load

        print_config(stack, job_format, directory)
        return
    settings = load_project(directory).stack_config(stack)
    rows = [(_short(key, settings.project), settings.mask_secrets(key)) for key in sorted(settings.values)]
    width = max((len(key) for key, _ in rows), default=3)
    for key, value in (("KEY", "VALUE"), *rows):
        print(f"{key:<{width}}  {value}")


@app.command()
def get(
    key: Key,
    stack: StackName,
    *,
    path: Path_ = False,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print one value, decrypted.

    Example: lakewright config get aws:region --stack acme
    """
    from lakewright_engine.model.errors import ProjectError  # noqa: PLC0415

    settings = load_project(directory).stack_config(stack)
    value = settings.get(key, path=path)
    if value is None:
        raise ProjectError(f"configuration key '{key}' not found for stack '{stack}'")
    if as_json:
        print(
            json.dumps(
                _value_to_json(value, secret=settings.holds_secret(key, path=path)), indent=2, ensure_ascii=False
            )
        )
    else:
        print(value)


@app.command("set")
def set_value(
    key: Key,
    stack: StackName,
    *,
    value: Annotated[str | None, typer.Argument(help="The value. Default: read from standard input.")] = None,
    secret: Annotated[bool, typer.Option("--secret", help="Encrypt the value.")] = False,
    path: Path_ = False,
    directory: Directory = HERE,
) -> None:
    """Set one value.

    Example: lakewright config set token --stack acme --secret < token.txt
    """
    project = load_project(directory)
    settings = project.stack_config(stack)
    if value is None:
        value = _read_value(hidden=secret)
    if secret:
        if not value.strip():
            raise UsageError(
                f"config set --secret {key}: the value is empty, so nothing was changed;"
                f" pass it on standard input: `lakewright config set {key} --stack {stack} --secret < FILE`"
            )
        project.secrets(stack)
        settings = project.stack_config(stack)
    settings.set(key, value, secret=secret, path=path)
    settings.save()
    print(f"{'Encrypted' if secret else 'Set'} {key} in {os.path.relpath(project.stack_file(stack))}.")


@app.command("rm")
def remove(key: Key, stack: StackName, *, path: Path_ = False, directory: Directory = HERE) -> None:
    """Remove one value.

    Example: lakewright config rm aws:region --stack acme
    """
    settings = load_project(directory).stack_config(stack)
    settings.remove(key, path=path)
    settings.save()


def _read_value(*, hidden: bool) -> str:
    if sys.stdin.isatty():
        return typer.prompt("value", hide_input=hidden)
    return sys.stdin.read().removesuffix("\n")


def _short(key: str, project: str) -> str:
    return key.removeprefix(f"{project}:")


def _value_to_json(value: str, *, secret: bool) -> dict[str, Any]:
    printed: dict[str, Any] = {"value": value}
    if value.startswith(("{", "[")):
        with suppress(ValueError):
            printed["object_value"] = json.loads(value)
    return printed | {"secret": secret}
