"""Format `texera`: variables for the file that Texera's single-node deployment reads, `bin/single-node/.env`."""

from __future__ import annotations

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import NoAuth

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest
from lakewright.config_formats.refusals import STORAGE_TITLES
from lakewright.kubernetes.runtimes import texera_environment

_OWN_LAKEKEEPER = (
    "Texera's service `lakekeeper-init` creates a warehouse of this name in Texera's own Lakekeeper: disable the"
    " service by a file for `docker compose` (docs/guides/texera.md)"
)


def _render_variables(request: ConfigRequest) -> dict[str, str]:
    variables = "".join(f"{name}={value}\n" for name, value in texera_environment(request.config).items())
    note = _describe_other_warehouses(request.config)
    return {".env": (f"# {note}\n" if note else "") + variables}


def _describe_omissions(request: ConfigRequest) -> tuple[str, ...]:
    config = request.config
    notes = [_describe_other_warehouses(config), _OWN_LAKEKEEPER]
    if not isinstance(config.auth, NoAuth):
        notes.append(
            f"Texera sends no credential, and {config.uri} asks for it: set STORAGE_ICEBERG_CATALOG_REST_URI to a proxy"
            " that adds a token (docs/guides/texera.md)"
        )
    return tuple(note for note in notes if note)


def _list_problems(request: ConfigRequest) -> tuple[str, ...]:
    warehouse = request.config.warehouses[0]
    if warehouse.storage == "s3":
        return ()
    return (
        f"warehouse {warehouse.name} is on {STORAGE_TITLES[warehouse.storage]}, and Texera reads S3 only (Iceberg's"
        " `S3FileIO`); choose a warehouse on S3 with --warehouse",
    )


def _describe_other_warehouses(config: CatalogConfig) -> str:
    first_name, *omitted_names = (warehouse.name for warehouse in config.warehouses)
    if not omitted_names:
        return ""
    return f"Texera has one warehouse for all executions, {first_name}; left out: {', '.join(omitted_names)}"


FORMAT = ConfigFormat(_render_variables, _describe_omissions, list_problems=_list_problems)
