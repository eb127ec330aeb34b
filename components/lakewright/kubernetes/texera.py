"""Computing units of Apache Texera: labels, environment variables, and registration. Pure functions.

Names follow Texera's computing-unit-managing-service, storage.conf and auth.conf. Passwords, the JWT secret and the
user's token come from Kubernetes Secrets, which no manifest contains. Units get no S3 key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lakewright.kubernetes.settings import TexeraSettings
from lakewright.spec.computing_unit import ComputingUnitSpec, TexeraCatalog
from lakewright.spec.identity import JobsSecret

_REST = "STORAGE_ICEBERG_CATALOG_REST_"
_TYPE = "STORAGE_ICEBERG_CATALOG_TYPE"
_POSTGRES = "STORAGE_ICEBERG_CATALOG_POSTGRES_"
_JDBC = "STORAGE_JDBC_"
_TABLE = "STORAGE_ICEBERG_TABLE_"
_JAVA_OPTIONS = "JAVA_OPTS"

SET_BY_STACK: Mapping[str, str] = {
    "LAKEWRIGHT_CATALOG_FILE": "the unit's ConfigMap",
    "PYICEBERG_HOME": "the unit's ConfigMap",
    "HOME": "the unit's scratch disk",
    "TMPDIR": "the unit's scratch disk",
    _TYPE: "`kubernetes.texera.catalog`",
    f"{_REST}URI": "`lakekeeper.catalog_uri`",
    f"{_REST}WAREHOUSE_NAME": "`computing_units.warehouses` of the spec",
    f"{_POSTGRES}URI_WITHOUT_SCHEME": "`kubernetes.texera.postgres`",
    f"{_POSTGRES}USERNAME": "`kubernetes.texera.postgres`",
    f"{_TABLE}RESULT_NAMESPACE": "the preset `texera` of namespaces",
    f"{_TABLE}CONSOLE_MESSAGES_NAMESPACE": "the preset `texera` of namespaces",
    f"{_TABLE}RUNTIME_STATISTICS_NAMESPACE": "the preset `texera` of namespaces",
    f"{_TABLE}STATE_NAMESPACE": "the preset `texera` of namespaces",
}
"""Source of each variable that the stack sets in units of Texera, without secrets (`PublicVariable`)."""
SET_WITH_AUTHORITIES: Mapping[str, str] = dict.fromkeys(
    ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), "`kubernetes.ca_bundle` or `lakekeeper.jobs_ca_bundle`"
)
"""Source of each variable that the stack sets where pods have certificate authorities of the platform."""


def labels(unit: ComputingUnitSpec) -> dict[str, str]:
    """Return Texera's labels of a unit's pod."""
    if unit.runtime != "texera":
        return {}
    cuid = unit.texera.cuid if unit.texera else None
    return {"name": unit.name, **({"cuid": str(cuid)} if cuid else {})}


def catalog_kind(unit: ComputingUnitSpec, settings: TexeraSettings) -> TexeraCatalog:
    """Return the kind of a unit's catalog: its own setting, else the environment's."""
    return (unit.texera and unit.texera.catalog) or settings.catalog


def find_catalog_mistake(unit: ComputingUnitSpec, settings: TexeraSettings) -> str | None:
    """Return why a unit cannot have its kind of catalog; None if it can."""
    if unit.runtime == "texera" and catalog_kind(unit, settings) == "postgres" and settings.postgres is None:
        return "expected `kubernetes.texera.postgres` in the environment with the database's address; found none"
    return None


def find_start_mistake(unit: ComputingUnitSpec, settings: TexeraSettings, *, trial: bool) -> str | None:
    """Return why a unit could not start; None if it could. Manifests of a trial may lack what a running unit needs."""
    if unit.runtime != "texera" or trial:
        return None
    missing = [f"`{name}`" for name in ("database", "jwt_secret") if getattr(settings, name) is None]
    if not missing:
        return None
    return (
        f"expected {' and '.join(missing)} for unit `{unit.name}`: it connects to Texera's database when it starts,"
        " and verifies users by the JWT secret; found none. Add references to Secrets, or set"
        " `kubernetes.trial: true` to render manifests only"
    )


def list_variable_mistakes(
    unit: ComputingUnitSpec, settings: TexeraSettings, *, ca_bundle: str | None
) -> list[tuple[str, str]]:
    """Return the names in `variables` of the settings that the stack sets, and why each is refused.

    Args:
        unit: The unit.
        settings: Settings of the environment.
        ca_bundle: Path in pods of the platform's certificate authorities; None without authorities.
    """
    if unit.runtime != "texera":
        return []
    sources = {**SET_BY_STACK, **(SET_WITH_AUTHORITIES if ca_bundle else {})}
    unused = _POSTGRES if catalog_kind(unit, settings) == "rest" else _REST
    return [
        (name, f"is set by the stack, from {sources[name]}")
        for name in settings.variables
        if name in sources and not name.startswith(unused)
    ]


def list_services(unit: ComputingUnitSpec, settings: TexeraSettings) -> list[tuple[str, str]]:
    """Return the databases and other services that a unit must reach: the path in the settings, and the address."""
    if unit.runtime != "texera":
        return []
    catalog_database = settings.postgres if catalog_kind(unit, settings) == "postgres" else None
    databases = {"database": settings.database, "postgres": catalog_database}
    return [
        *((f"{path}.address", f"postgresql://{database.address}") for path, database in databases.items() if database),
        *((f"egress.{index}", url) for index, url in enumerate(settings.egress)),
    ]


def list_service_urls(unit: ComputingUnitSpec, settings: TexeraSettings) -> list[str]:
    """Return the addresses of the databases and other services that a unit must reach."""
    return [url for _, url in list_services(unit, settings)]


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
    texera_variables: list[dict[str, Any]] = [
        {"name": name, "value": value} for name, value in settings.variables.items() if name != _JAVA_OPTIONS
    ]
    if java_options := settings.variables.get(_JAVA_OPTIONS):
        # The last of equal options has effect in Java: the environment's.
        rest_variables = [
            variable | {"value": f"{variable['value']} {java_options}"}
            if variable["name"] == _JAVA_OPTIONS
            else variable
            for variable in rest_variables
        ]
    if database := settings.database:
        jdbc_url = f"jdbc:postgresql://{database.address}?currentSchema={database.search_path}"
        texera_variables += [
            {"name": f"{_JDBC}URL", "value": jdbc_url},
            {"name": f"{_JDBC}USERNAME", "value": database.username},
            _read_secret(f"{_JDBC}PASSWORD", database.password),
        ]
    if settings.jwt_secret:
        texera_variables.append(_read_secret("AUTH_JWT_SECRET", settings.jwt_secret))
    if settings.user_token:
        texera_variables.append(_read_secret("USER_JWT_TOKEN", settings.user_token))
    if catalog_kind(unit, settings) == "postgres" and settings.postgres:
        texera_variables += [
            {"name": _TYPE, "value": "postgres"},
            {"name": f"{_POSTGRES}URI_WITHOUT_SCHEME", "value": settings.postgres.address},
            {"name": f"{_POSTGRES}USERNAME", "value": settings.postgres.username},
        ]
        if settings.postgres.password:
            texera_variables.append(_read_secret(f"{_POSTGRES}PASSWORD", settings.postgres.password))
        rest_variables = [variable for variable in rest_variables if not variable["name"].startswith(_REST)]
    names = {variable["name"] for variable in texera_variables}
    return [*(variable for variable in rest_variables if variable["name"] not in names), *texera_variables]


def _read_secret(name: str, source: JobsSecret) -> dict[str, Any]:
    """Return a variable that Kubernetes reads from a Secret when the container starts."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": source.name, "key": source.key}}}


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
