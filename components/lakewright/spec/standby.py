"""Standbys of warehouses, which CronJobs copy and compare."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from lakewright_spark.policies.model import Duration
from pydantic import AfterValidator, Field

from lakewright.names.types import NotBlank, ServiceUrl
from lakewright.spec.size import Size, SizeChoice
from lakewright.validation.cron import Cron
from lakewright.validation.quantity import seconds_between
from lakewright.validation.strict_model import StrictModel

_ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
_Key = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]
_RESERVED = frozenset(
    {
        "AWS_CA_BUNDLE",
        "HOME",
        "LAKEWRIGHT_CATALOG_FILE",
        "PYICEBERG_HOME",
        "REQUESTS_CA_BUNDLE",
        "SOURCE_ACCESS_KEY_ID",
        "SOURCE_SECRET_ACCESS_KEY",
        "SPARK_LOCAL_DIRS",
        "SSL_CERT_FILE",
        "TMPDIR",
    }
)
"""Variables that the stack sets in the pods of standbys."""


def parse_deadline(duration: str) -> int:
    """Return the seconds of a duration such as `45m` or `4h`. Raises ValueError."""
    return seconds_between(duration, 600, 86_400, "a time of ten minutes to a day, such as `45m` or `4h`")


def _check_deadline(value: str) -> str:
    parse_deadline(value)
    return value


def _check_variable(value: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError("expected the name of an environment variable: letters, digits and `_`")
    if value in _RESERVED:
        raise ValueError("expected another variable: the stack sets this variable itself")
    return value


class ConfigMapKey(StrictModel):
    """A key of a ConfigMap in the tenant's namespace, which the stack does not make."""

    name: _ObjectName
    key: _Key = "standby.json"


class StandbySecret(StrictModel):
    """A Secret in the tenant's namespace with the keys of object stores, which the stack does not make."""

    name: _ObjectName
    access_key_id: _Key = "access_key_id"
    """Key with the ID of an S3 access key that may read the files of the warehouse."""
    secret_access_key: _Key = "secret_access_key"  # noqa: S105 - the name of a key
    """Key with the secret of that access key."""
    variables: dict[Annotated[str, AfterValidator(_check_variable)], _Key] = {}
    """Further environment variables of the pods, by name, and their keys in the Secret: the variables that `s3_keys`
    and `auth` of the standby's configuration name."""


class StandbySpec(StrictModel):
    """A standby of a warehouse: copies of its tables in another bucket and catalog, made by a CronJob."""

    schedule: Cron
    """Cron schedule of the copies, of five fields, in UTC."""
    config: ConfigMapKey
    """Catalog configuration of the standby, as `lakewright config --format json` prints it. It has no secrets."""
    warehouse: NotBlank | None = None
    """Warehouse in that configuration. Default: its only warehouse."""
    secret: StandbySecret
    egress: Annotated[list[ServiceUrl], Field(min_length=1)]
    """Addresses of the standby's catalog and object store, which the pods may reach."""
    tables: list[NotBlank] = []
    """Patterns of tables, `NAMESPACE.TABLE`, where `*` is any text. Default: all."""
    verify: Literal["metadata", "sample", "full"] = "metadata"
    """Rows to compare after a copy: none, of some files, or all."""
    deadline: Annotated[str, AfterValidator(_check_deadline)] = "4h"
    """Maximum time of a run, such as `45m` or `4h`. The next run continues."""
    max_lag: Duration | None = None
    """A second CronJob fails if a table is further behind, such as `26h`. Default: no such check."""
    lag_schedule: Cron = "47 * * * *"
    """Cron schedule of this check, of five fields, in UTC."""
    size: SizeChoice = Size(cpu="1", memory="2Gi")
    """Size of a run's pod: `small`, `medium`, `large`, `xlarge`, or amounts."""

    @property
    def runs(self) -> int:
        """Pods that may run at the same time."""
        return 1 if self.max_lag is None else 2
