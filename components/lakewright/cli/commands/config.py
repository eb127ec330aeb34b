"""`lakewright config`: a stack's settings, and with `--format` the catalog configuration of its jobs."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from lakewright.cli.default_stack import find_default_stack
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, StackName, load_project
from lakewright.cli.stack_argument import CommandLine, StackGroup
from lakewright.config_formats.registry import FormatName

app = CommandLine(add_completion=False, cls=StackGroup)

Path_ = Annotated[bool, typer.Option("--path", help="KEY is a path into a value: `tree.leaf[0]`.")]
Key = Annotated[str, typer.Argument(help="NAME, or NAMESPACE:NAME for a namespace other than the project's.")]


@app.callback(invoke_without_command=True)
def config(
    context: typer.Context,
    *,
    stack: Annotated[str | None, typer.Option("--stack", "-s", help="Name of the stack.")] = None,
    job_format: Annotated[
        FormatName | None,
        typer.Option("--format", help="Print the catalog configuration of jobs in this format, or of this engine."),
    ] = None,
    engine_version: Annotated[
        str | None, typer.Option(help="Version of the engine. Default: the version in docs/reference/engines.md.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the files into this folder, and print their paths.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that have other content.")] = False,
    refreshing: Annotated[
        bool,
        typer.Option("--refreshing", help="Use classes of lakewright-spark, which read secrets at each use."),
    ] = False,
    job_duration: Annotated[
        str | None,
        typer.Option(help="Longest job, such as 45m or 4h; refused if the credentials of the engine expire earlier."),
    ] = None,
    warehouse: Annotated[
        list[str] | None, typer.Option(help="Only this warehouse; repeatable. Default: all warehouses.")
    ] = None,
    client_id: Annotated[
        str | None, typer.Option(help="Client of the identity provider. Default: the client of the stack's jobs.")
    ] = None,
    client_secret: Annotated[
        str | None, typer.Option(help="Reference to its secret, env:NAME or file:PATH.", metavar="REFERENCE")
    ] = None,
    token_url: Annotated[str | None, typer.Option(help="Token endpoint of the identity provider.")] = None,
    scope: Annotated[str | None, typer.Option(help="Scope to request.")] = None,
    audience: Annotated[str | None, typer.Option(help="Audience to request; empty for none.")] = None,
    directory: Directory = HERE,
) -> None:
    """Print a stack's settings (secrets masked), or with --format the catalog configuration of its jobs.

    Example: lakewright config --stack acme --format trino --engine-version 482 --out etc/catalog
    """
    if context.invoked_subcommand is not None:
        return
    from lakewright.cli.catalog_config import FormatOptions, write_config  # noqa: PLC0415 - slow to load

    options = FormatOptions(
        engine_version=engine_version,
        refreshing=refreshing,
        job_duration=job_duration,
        warehouses=tuple(warehouse or ()),
        out=out,
        overwrite=overwrite,
        client_id=client_id,
        client_secret=client_secret,
        token_url=token_url,
        scope=scope,
        audience=audience,
    )
    if job_format is None and options != FormatOptions():
        raise UsageError("options of a catalog configuration: expected also --format")
    stack = stack or find_default_stack("lakewright config", directory)
    if job_format is not None:
        write_config(stack, job_format, directory, options)
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
