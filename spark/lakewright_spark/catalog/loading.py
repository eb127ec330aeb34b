"""Load the catalog configuration of this process, and choose a warehouse of it."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from lakewright_spark.catalog.config import CatalogConfig
from lakewright_spark.errors import ConfigMissingError, WarehouseRefusedError

_TRUST_VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")
"""Variables with the certificate authorities of clients without a setting: of the identity provider and the signer."""


def load_config(path: str | Path | None = None) -> CatalogConfig:
    """Return the configuration of this process, and trust its certificate authorities from then on.

    Args:
        path: Configuration file. Default: $LAKEWRIGHT_CATALOG (JSON), else $LAKEWRIGHT_CATALOG_FILE.

    Raises:
        ConfigMissingError: There is no configuration, or it cannot be read.
    """
    config = read_config(Path(path) if path is not None else None)
    if config.ca_bundle:
        _trust(config.ca_bundle)
    return config


def load_config_pair(source: Path, target: Path) -> tuple[CatalogConfig, CatalogConfig]:
    """Return two configurations, and trust the certificate authorities of both from then on.

    Raises:
        ConfigMissingError: A configuration does not exist, or it or its `ca_bundle` cannot be read.
    """
    configs = read_config(source), read_config(target)
    bundles = {config.ca_bundle for config in configs}
    if bundle := bundles.pop() if len(bundles) == 1 else _join_bundles(bundles):
        _trust(bundle)
    return configs


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


def read_config(path: Path | None) -> CatalogConfig:
    """Return a configuration without trust in its certificate authorities. None: as for `load_config`.

    Raises:
        ConfigMissingError: There is no configuration, or it cannot be read.
    """
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


def _trust(bundle: str) -> None:
    os.environ |= dict.fromkeys(_TRUST_VARIABLES, bundle)


def _join_bundles(bundles: Iterable[str | None]) -> str:
    """Return the path of a temporary file with the authorities of bundles. None: the authorities of this process."""
    import certifi  # noqa: PLC0415 - needed by two configurations alone

    paths: set[str] = set()
    for bundle in bundles:
        paths |= {bundle} if bundle else {os.environ.get(name) or certifi.where() for name in _TRUST_VARIABLES}
    try:
        text = "\n".join(Path(path).read_text(encoding="utf-8", errors="replace") for path in sorted(paths))
    except OSError as error:
        raise ConfigMissingError(
            f"{error.filename}: expected a readable PEM file of certificate authorities ({type(error).__name__})"
        ) from None
    descriptor, name = tempfile.mkstemp(prefix="lakewright-ca-", suffix=".pem")
    atexit.register(Path(name).unlink, missing_ok=True)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    return name


def _describe(error: ValidationError) -> str:
    """Return every problem without the rejected values, which may be secrets."""
    problems = error.errors(include_url=False, include_input=False)
    return "; ".join(f"{'.'.join(str(step) for step in p['loc']) or 'it'}: {p['msg']}" for p in problems)
