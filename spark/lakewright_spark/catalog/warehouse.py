"""CatalogWarehouse: one warehouse of a catalog configuration."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, AwareDatetime

from lakewright_spark.catalog.auth import S3Keys
from lakewright_spark.catalog.config_model import ADDED_LATER, ConfigModel
from lakewright_spark.catalog.limits import WarehouseLimits
from lakewright_spark.policies.model import JobName

Delegation = Literal["vended", "remote-signing"]
StorageKind = Literal["s3", "adls", "gcs"]

_SECRET_OPTION = re.compile(r"secret|password|token|access-key|credential", re.IGNORECASE)


def _check_options(options: dict[str, str]) -> dict[str, str]:
    if secret := sorted(name for name in options if _SECRET_OPTION.search(name)):
        raise ValueError(f"expected options without secrets, found {', '.join(secret)}")
    return options


class CatalogWarehouse(ConfigModel):
    """A warehouse as jobs see it: a catalog of the same name in Spark and in PyIceberg."""

    name: str
    id: str | None = None
    """UUID in Lakekeeper. None for other kinds of catalogs."""
    delegation: Delegation = "vended"
    namespaces: list[str] = []
    """Full names, levels joined by a dot."""
    s3: Annotated[dict[str, str], AfterValidator(_check_options)] = {}
    """Client options under Iceberg's names, such as `s3.endpoint`."""
    location: Annotated[str | None, ADDED_LATER] = None
    """Kind `jdbc`: parent location of new tables, s3://BUCKET/PREFIX. Kind `rest`: the server's name of the warehouse.

    Kind `rest` uses `name` by default.
    """
    s3_keys: Annotated[S3Keys | None, ADDED_LATER] = None
    """S3 keys for catalogs that do not vend credentials. Default: AWS's default credential chain."""
    owner: Annotated[str | None, ADDED_LATER] = None
    """The principal whose runs write here, `user:IDP~SUBJECT` or `role:NAME`. Default: every run of the tenant."""
    writers: Annotated[tuple[str, ...], ADDED_LATER] = ()
    """Other principals whose runs may write here, by a grant."""
    writer_ends: Annotated[dict[str, AwareDatetime], ADDED_LATER] = {}
    """Times from which principals of `writers` may no longer write, because their grants end."""
    server_jobs: Annotated[tuple[JobName, ...], ADDED_LATER] = ()
    """Maintenance jobs that the catalog's server does itself. The scheduler does not run them."""
    may_delete: Annotated[bool, ADDED_LATER] = True
    """Whether the bucket's owner lets the platform delete. Otherwise jobs that delete files are held back."""
    storage: Annotated[StorageKind, ADDED_LATER] = "s3"
    """Storage service of the warehouse's files."""
    credential_seconds: Annotated[int | None, ADDED_LATER] = None
    """Lifetime of vended credentials, in seconds. None: the catalog's default."""
    limits: Annotated[WarehouseLimits | None, ADDED_LATER] = None
    """Limits that `usage` compares with what exists. None: no limits."""
