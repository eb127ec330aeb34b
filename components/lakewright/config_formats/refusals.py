"""Combinations of engine, version, storage and authentication that cannot work, each with its reason and a way out."""

from __future__ import annotations

from collections.abc import Iterator

from lakewright_spark.catalog import CatalogWarehouse
from lakewright_spark.catalog.auth import ClientCredentialsAuth

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.errors import RefusedFormatError
from lakewright.config_formats.versions import is_at_least

DEFAULT_CREDENTIAL_SECONDS = 3600
"""Lifetime of vended credentials where the spec has no `token_seconds`: Lakekeeper's default."""

STORAGE_TITLES = {"s3": "S3", "adls": "ADLS", "gcs": "Google Cloud Storage"}


def check_request(name: str, config_format: ConfigFormat, request: ConfigRequest) -> None:
    """Raise RefusedFormatError, with all reasons, if the engine cannot use the configuration."""
    engine = config_format.engine
    problems = list(config_format.list_problems(request))
    problems += _list_foreign_options(name, request) if engine is None else _list_problems(name, engine, request)
    if problems:
        raise RefusedFormatError("\n".join(f"--format {name}: {problem}" for problem in problems))


def list_notes(config_format: ConfigFormat, request: ConfigRequest) -> list[str]:
    """Return what a user has to know about a configuration, in sentences."""
    notes = list(config_format.describe_omissions(request))
    engine, auth = config_format.engine, request.config.auth
    if engine is None:
        return notes
    if request.refreshing:
        notes.append(f"this configuration uses {engine.refreshing}")
    elif isinstance(auth, ClientCredentialsAuth) and engine.default_scope and not auth.scope:
        notes.append(
            f"{engine.title} requests the scope `{engine.default_scope}` unless it gets another scope: if the identity"
            " provider refuses it, give --scope"
        )
    if request.config.ca_bundle and not request.refreshing:
        notes.append(f"{engine.title} has to trust the certificate authorities of {request.config.ca_bundle}")
    return [*notes, *engine.advice]


def _list_foreign_options(name: str, request: ConfigRequest) -> Iterator[str]:
    options = {
        "--engine-version": request.version,
        "--refreshing": request.refreshing,
        "--job-duration": request.job_seconds,
    }
    for option, value in options.items():
        if value:
            yield f"{option} belongs to formats of engines; {name} is for jobs of lakewright-spark, which refresh all"


def _list_problems(name: str, engine: EngineFacts, request: ConfigRequest) -> Iterator[str]:
    config = request.config
    if not is_at_least(request.version, engine.oldest):
        yield (
            f"expected {engine.title} {engine.oldest} or newer, found {request.version}: {engine.oldest_reason};"
            " upgrade it"
        )
    if request.refreshing and not engine.refreshing:
        yield f"--refreshing: {engine.title} cannot load classes of this project; leave the option out"
    readable = {"pyiceberg", "spark"} if config.auth.kind == "none" else {"pyiceberg"}
    if config.kind == "jdbc" and name not in readable:
        yield (
            f"expected a REST catalog, found a catalog in a database ({config.uri}), whose password the engine cannot"
            " read: use --format pyiceberg or json, or serve the tables from Lakekeeper"
        )
    if not request.refreshing and config.kind != "jdbc":
        yield from _list_auth_problems(engine, request)
    for warehouse in config.warehouses:
        yield from _list_warehouse_problems(name, engine, request, warehouse)


def _list_auth_problems(engine: EngineFacts, request: ConfigRequest) -> Iterator[str]:
    auth = request.config.auth
    if auth.kind not in engine.auth_kinds:
        ours = ", or --refreshing" if engine.refreshing else ""
        reason = (
            "reads its token from a file that another process renews"
            if auth.kind == "token-file"
            else f"authenticates by {auth.kind}"
        )
        yield (
            f"the configuration {reason}, which {engine.title} cannot do; give a client of the identity provider:"
            f" --client-id ID --token-url URL{ours}"
        )
    elif isinstance(auth, ClientCredentialsAuth) and auth.audience and not engine.has_audience:
        yield (
            f"the identity provider needs the audience {auth.audience}, which {engine.title} cannot request; let the"
            " provider add the audience to the client's tokens or to a scope, then give --audience '' (and --scope)"
        )


def _list_warehouse_problems(
    name: str, engine: EngineFacts, request: ConfigRequest, warehouse: CatalogWarehouse
) -> Iterator[str]:
    if warehouse.delegation not in engine.delegations:
        yield (
            f"warehouse {warehouse.name} signs requests (`delegation: remote-signing`), which {engine.title} cannot"
            " use; set `delegation: vended` in the spec, leave the warehouse out with --warehouse, or use Spark, Flink"
            " or PyIceberg"
        )
    if warehouse.s3_keys and name != "pyiceberg":
        yield (
            f"warehouse {warehouse.name} has S3 keys of its jobs instead of vended credentials: use --format json for"
            " jobs of lakewright-spark, or let the catalog vend credentials"
        )
    if warehouse.storage not in engine.storages:
        yield (
            f"warehouse {warehouse.name} is on {STORAGE_TITLES[warehouse.storage]}, for which {engine.title} is not"
            " known to use vended credentials; use Spark, Flink or PyIceberg"
        )
    seconds = warehouse.credential_seconds or DEFAULT_CREDENTIAL_SECONDS
    lives_longer = request.job_seconds is not None and request.job_seconds > seconds
    if lives_longer and warehouse.delegation == "vended" and not refreshes_credentials(engine, request):
        newer = f"; {engine.title} {engine.refreshes_since} and newer do" if engine.refreshes_since is not None else ""
        yield (
            f"warehouse {warehouse.name} vends credentials for {seconds} seconds, a job takes {request.job_seconds},"
            f" and {engine.title} {request.version} does not refresh credentials{newer}; split the job, raise"
            " `token_seconds` of the warehouse in the spec, or use Spark or Flink"
        )


def refreshes_credentials(engine: EngineFacts, request: ConfigRequest) -> bool:
    """Return whether an engine's version requests new vended credentials during a job."""
    if engine.refreshes_since is None:
        return False
    return is_at_least(request.version, engine.refreshes_since)
