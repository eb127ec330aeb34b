"""Computing units of Apache Texera: labels, environment variables, and registration. Pure functions.

Names follow Texera's computing-unit-managing-service and its storage.conf. Units get no database, S3 or JWT secret.
"""

from __future__ import annotations

from typing import Any

from lakewright.kubernetes.settings import TexeraSettings
from lakewright.spec.computing_unit import ComputingUnitSpec, TexeraCatalog

_REST = "STORAGE_ICEBERG_CATALOG_REST_"
_TYPE = "STORAGE_ICEBERG_CATALOG_TYPE"
_POSTGRES = "STORAGE_ICEBERG_CATALOG_POSTGRES_"


def labels(unit: ComputingUnitSpec) -> dict[str, str]:
    """Return Texera's labels of a unit's pod."""
    if unit.runtime != "texera":
        return {}
    cuid = unit.texera.cuid if unit.texera else None
    return {"name": unit.name, **({"cuid": str(cuid)} if cuid else {})}


def catalog_kind(unit: ComputingUnitSpec, settings: TexeraSettings) -> TexeraCatalog:
    """Return the kind of a unit's catalog: its own setting, else the environment's."""
    return (unit.texera and unit.texera.catalog) or settings.catalog


def find_mistake(unit: ComputingUnitSpec, settings: TexeraSettings) -> str | None:
    """Return why a unit cannot have its kind of catalog; None if it can."""
    if unit.runtime == "texera" and catalog_kind(unit, settings) == "postgres" and settings.postgres is None:
        return "expected `kubernetes.texera.postgres` in the environment with the database's address; found none"
    return None


def database_url(unit: ComputingUnitSpec, settings: TexeraSettings) -> str | None:
    """Return the address of the database that a unit must reach; None with a REST catalog."""
    if unit.runtime != "texera" or catalog_kind(unit, settings) == "rest" or settings.postgres is None:
        return None
    return f"postgresql://{settings.postgres.address}"


def variables(
    unit: ComputingUnitSpec, rest_variables: list[dict[str, Any]], settings: TexeraSettings
) -> list[dict[str, Any]]:
    """Return the environment variables of a unit's container, with Texera's variables if its runtime is Texera.

    Args:
        unit: The unit.
        rest_variables: Variables for a REST catalog.
        settings: Settings of the environment.
    """
    if unit.runtime != "texera":
        return rest_variables
    texera_variables = dict(settings.variables)
    if catalog_kind(unit, settings) == "postgres" and settings.postgres:
        texera_variables |= {
            _TYPE: "postgres",
            f"{_POSTGRES}URI_WITHOUT_SCHEME": settings.postgres.address,
            f"{_POSTGRES}USERNAME": settings.postgres.username,
        }
        rest_variables = [variable for variable in rest_variables if not variable["name"].startswith(_REST)]
    return [
        *(variable for variable in rest_variables if variable["name"] not in texera_variables),
        *({"name": name, "value": value} for name, value in texera_variables.items()),
    ]


def registration(unit: ComputingUnitSpec, host: str, port: int) -> dict[str, str]:
    """Return the body of Texera's `POST /computing-unit/create` for a unit that Texera does not start itself.

    Texera calls such units `local`: it stores their name and address, and starts no pod. The limits show
    the unit's resources to administrators.
    """
    size = unit.size
    return {
        "name": unit.name,
        "unitType": "local",
        "uri": f"{host}:{port}",
        "cpuLimit": size.cpu,
        "memoryLimit": size.memory,
        "gpuLimit": str(size.gpu),
        "jvmMemorySize": size.memory,
        "shmSize": size.shm or "64Mi",
    }
