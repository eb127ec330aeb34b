"""Load the catalog configuration of this process, and choose a warehouse of it."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import ValidationError

from lakewright_spark.catalog.config import CatalogConfig
from lakewright_spark.errors import ConfigMissingError, WarehouseRefusedError


def load_config(path: str | Path | None = None) -> CatalogConfig:
    """Return the configuration of this process, and trust its certificate authorities from then on.

    Args:
        path: Configuration file. Default: $LAKEWRIGHT_CATALOG (JSON), else $LAKEWRIGHT_CATALOG_FILE.

    Raises:
        ConfigMissingError: There is no configuration, or it cannot be read.
    """
    config = _read_config(Path(path) if path is not None else None)
    if config.ca_bundle:
        # Clients of the identity provider and the signer read only these variables.
        os.environ |= dict.fromkeys(("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"), config.ca_bundle)
    return config


def choose_warehouse(config: CatalogConfig, name: str | None) -> str:
    """Return the name of the chosen warehouse, or of the only warehouse.

    Raises:
        ConfigMissingError: Several warehouses and no choice.
        WarehouseRefusedError: No such warehouse.
    """
    if name is None:
        if len(config.warehouses) == 1:
            return config.warehouses[0].name
        names = ", ".join(warehouse.name for warehouse in config.warehouses)
        raise ConfigMissingError(f"tenant {config.tenant} has several warehouses, give --warehouse: {names}")
    try:
        return config.warehouse(name).name
    except KeyError as error:
        raise WarehouseRefusedError(error.args[0]) from None


def _read_config(path: Path | None) -> CatalogConfig:
    text, file = os.environ.get("LAKEWRIGHT_CATALOG"), os.environ.get("LAKEWRIGHT_CATALOG_FILE")
    if path is None and not text and file:
        path = Path(file)
    try:
        if path:
            return CatalogConfig.load(path)
        if text:
            return CatalogConfig.from_json(text)
    except (FileNotFoundError, IsADirectoryError):
        raise ConfigMissingError(f"no catalog configuration at {path}: write it with `lakewright config`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigMissingError(f"{path} cannot be read: {type(error).__name__}") from None
    except ValidationError as error:
        source = path or "$LAKEWRIGHT_CATALOG"
        raise ConfigMissingError(f"{source} is no catalog configuration: {_describe(error)}") from None
    raise ConfigMissingError("no catalog configuration: give --config FILE or set LAKEWRIGHT_CATALOG")


def _describe(error: ValidationError) -> str:
    """Return every problem without the rejected values, which may be secrets."""
    problems = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(str(step) for step in p['loc']) or 'it'}: {p['msg']}" for p in problems)
