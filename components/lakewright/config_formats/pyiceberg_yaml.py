"""Format `pyiceberg`: a .pyiceberg.yaml."""

from __future__ import annotations

import yaml

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.python_script import list_plain_options
from lakewright.config_formats.values import SHELL, name_secret

CLASSES = "the auth managers of `lakewright_spark.pyiceberg_client`, which need the package lakewright-spark"
_SECRETS = ("credential", "token")


def _render_yaml(request: ConfigRequest) -> dict[str, str]:
    config = request.config
    if request.refreshing:
        return {".pyiceberg.yaml": config.pyiceberg_yaml()}
    catalogs = {
        warehouse.name: {
            key: value
            for key, value in list_plain_options(config, warehouse.name, SHELL).items()
            if key not in _SECRETS
        }
        for warehouse in config.warehouses
    }
    return {".pyiceberg.yaml": yaml.safe_dump({"catalog": catalogs}, sort_keys=False, width=120)}


def _describe_variables(request: ConfigRequest) -> tuple[str, ...]:
    config = request.config
    if request.refreshing:
        return ()
    notes: list[str] = []
    for warehouse in config.warehouses:
        secrets = {
            key: value for key, value in list_plain_options(config, warehouse.name, SHELL).items() if key in _SECRETS
        }
        for key, value in secrets.items():
            if "_" in warehouse.name:
                notes.append(
                    f"PyIceberg's variables cannot name {warehouse.name}: pass {key}=... to load_catalog, with the"
                    f" value of {name_secret(config)}"
                )
            else:
                variable = f"PYICEBERG_CATALOG__{warehouse.name.upper().replace('-', '_')}__{key.upper()}"
                notes.append(f'PyIceberg reads no reference, so set the variable {variable}: "{value}"')
    return tuple(notes)


FORMAT = ConfigFormat(
    _render_yaml,
    _describe_variables,
    EngineFacts(
        title="PyIceberg",
        version="0.12",
        secrets="variables `PYICEBERG_CATALOG__NAME__CREDENTIAL`",
        refreshes_since=None,
        refresh="no: a table keeps the credentials with which it was loaded",
        delegations=frozenset({"vended", "remote-signing"}),
        storages=frozenset({"s3", "adls", "gcs"}),
        has_audience=True,
        default_scope="catalog",
        refreshing=CLASSES,
        tested="`make test`: writes and reads with OAuth2 and vended credentials",
    ),
)
