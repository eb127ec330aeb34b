"""The catalog configuration of jobs, which the last update of a stack exported, and its text in each format."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lakewright.cli.errors import UsageError
from lakewright.cli.options import open_stack
from lakewright.config_formats.registry import load_format

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject
    from lakewright_spark.catalog import CatalogConfig

    from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest


OUTPUT = "catalog_config"

LONGEST_JOB_SECONDS = 30 * 86_400
USUAL_SECRET = "env:LAKEKEEPER_CLIENT_SECRET"  # noqa: S105 - a reference


@dataclass(frozen=True)
class FormatOptions:
    """Options of a catalog configuration: engine, files, client."""

    engine_version: str | None = None
    refreshing: bool = False
    job_duration: str | None = None
    warehouses: tuple[str, ...] = ()
    out: Path | None = None
    overwrite: bool = False
    client_id: str | None = None
    client_secret: str | None = None
    token_url: str | None = None
    scope: str | None = None
    audience: str | None = None


def read_catalog_config(project: PulumiProject, stack: str) -> CatalogConfig:
    """Return the configuration of a stack.

    Raises:
        EngineError: The state cannot be read.
        UsageError: The state has no configuration.
    """
    from lakewright_engine.state.outputs import stack_outputs  # noqa: PLC0415 - only commands that need the state load it
    from lakewright_spark.catalog import CatalogConfig  # noqa: PLC0415
    from pydantic import ValidationError  # noqa: PLC0415

    exported = stack_outputs(project.backend(), project.name, stack).get(OUTPUT)
    if exported is None:
        raise UsageError(f"stack '{stack}' has no output `{OUTPUT}`; run `lakewright up --stack {stack}` first")
    try:
        return CatalogConfig.model_validate(exported)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(step) for step in first["loc"])
        message = f"output `{OUTPUT}` of stack '{stack}' is not a catalog configuration: {path}: {first['msg']}"
        raise UsageError(message) from None


def write_config(stack: str, format_name: str, directory: Path, options: FormatOptions) -> None:
    """Print the stack's catalog configuration, or write its files.

    Raises:
        RefusedFormatError: The engine cannot use the configuration.
        UsageError: The stack has no configuration, or the options do not fit.
    """
    from lakewright.config_formats.output import write_files  # noqa: PLC0415
    from lakewright.config_formats.refusals import check_request, list_notes  # noqa: PLC0415

    out = options.out.absolute() if options.out else None  # `catalog_config` changes the folder
    config_format = load_format(format_name)
    request = _make_request(catalog_config(stack, directory), config_format, options)
    check_request(format_name, config_format, request)
    files = config_format.render(request)
    if out is None:
        _print_files(files, config_format)
    else:
        for path in write_files(files, out, overwrite=options.overwrite):
            print(path)
    for note in list_notes(config_format, request):
        print(f"note: {note}", file=sys.stderr)


def catalog_config(stack: str, directory: Path) -> CatalogConfig:
    """Return the configuration that the stack's last update exported. Raises UsageError if there is none."""
    project, _ = open_stack(directory, stack)
    return read_catalog_config(project, stack)


def _make_request(config: CatalogConfig, config_format: ConfigFormat, options: FormatOptions) -> ConfigRequest:
    from lakewright.config_formats.config_format import ConfigRequest  # noqa: PLC0415

    if options.warehouses:
        try:
            config = config.select_warehouses(options.warehouses)
        except KeyError as error:
            raise UsageError(f"--warehouse: {error.args[0]}") from None
    request = ConfigRequest(
        _replace_client(config, options),
        options.engine_version or "",
        options.refreshing,
        _read_seconds(options.job_duration),
    )
    engine = config_format.engine
    return replace(request, version=request.version or engine.version) if engine else request


def _replace_client(config: CatalogConfig, options: FormatOptions) -> CatalogConfig:
    """Return the configuration with the client of the identity provider that the options name."""
    from lakewright_spark.catalog.auth import ClientCredentialsAuth  # noqa: PLC0415

    changes = {
        "client_id": options.client_id,
        "client_secret": options.client_secret,
        "token_url": options.token_url,
        "scope": options.scope,
        "audience": options.audience,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    if not changes:
        return config
    secret = options.client_secret
    if secret and not secret.startswith(("env:", "file:")):
        raise UsageError("--client-secret: expected a reference env:NAME or file:PATH, never the secret")
    fields = config.auth.model_dump() if isinstance(config.auth, ClientCredentialsAuth) else {}
    if options.client_id and not secret:
        fields["client_secret"] = USUAL_SECRET
    fields |= {name: value or None for name, value in changes.items()}
    missing = [f"--{name.replace('_', '-')}" for name in ("client_id", "token_url") if not fields.get(name)]
    if missing:
        raise UsageError(f"expected also {' and '.join(missing)}: the stack's jobs authenticate by {config.auth.kind}")
    fields.setdefault("client_secret", USUAL_SECRET)
    auth = ClientCredentialsAuth.model_validate({**fields, "kind": "client-credentials"})
    return config.model_copy(update={"auth": auth})


def _read_seconds(duration: str | None) -> int | None:
    from lakewright.validation.quantity import seconds_between  # noqa: PLC0415

    if duration is None:
        return None
    expected = "a time of one minute to 30 days, such as 45m, 4h or 2d"
    try:
        return seconds_between(duration, 60, LONGEST_JOB_SECONDS, expected, units="mhd")
    except ValueError as error:
        raise UsageError(f"--job-duration {duration}: {error}") from None


def _print_files(files: Mapping[str, str], config_format: ConfigFormat) -> None:
    """Print files. Several files are separated by comments with their names."""
    if len(files) > 1 and not config_format.comment:
        raise UsageError(f"these are {len(files)} files ({', '.join(files)}): give --out DIR, or one --warehouse NAME")
    for name, text in files.items():
        if len(files) > 1:
            print(f"{config_format.comment} {name}")
        print(text.rstrip("\n"))
