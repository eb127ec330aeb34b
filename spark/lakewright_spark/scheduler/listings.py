"""Hold back jobs that list a table's location if the server signs no listings. Lakekeeper signs them from 0.14 on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast
from urllib.parse import SplitResult, quote, urlsplit

import requests
from botocore.awsrequest import AWSRequest  # pyright: ignore[reportMissingTypeStubs]
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import SignError
from pyiceberg.io import S3_ENDPOINT, S3_REGION
from pyiceberg.io.fsspec import S3V4RestSigner
from pyiceberg.table import Table

from lakewright_spark.aws_partition import service_host
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.maintenance.registry import JOBS_BY_NAME
from lakewright_spark.pyiceberg_client.catalog import explain_errors
from lakewright_spark.pyiceberg_client.table_metadata import load_metadata
from lakewright_spark.scheduler.plan import WarehousePlan
from lakewright_spark.table_identifier import TableIdentifier

_NOT_SIGNED = frozenset({"UriNotS3", "UriNoPath", "RequestUriMismatch", "NoSuchTableLocationException"})
"""`error.type` of Lakekeeper 0.11 to 0.13 for a listing: it reads the bucket's address as that of an object."""


def hold_jobs_without_listings(config: CatalogConfig, catalog: Catalog, plan: WarehousePlan) -> WarehousePlan:
    """Return the plan with jobs held back that need listings, if the server signs none. One table stands for all."""
    reason: str | None = None
    for table in plan.tables:
        if any(JOBS_BY_NAME[decision.job].needs_listing for decision in table.due):
            try:
                reason = reason_for_no_listing(config, catalog, table.facts.table)
                break
            except (NoSuchResultError, JobFailedError):
                continue  # dropped or damaged in the meantime: try another table
    if reason is None:
        return plan
    return replace(plan, tables=tuple(table.hold(lambda job: job.needs_listing, reason) for table in plan.tables))


def reason_for_no_listing(config: CatalogConfig, catalog: Catalog, table: TableIdentifier) -> str | None:
    """Return why the files of this table cannot be listed; None if they can."""
    if config.warehouse(table.warehouse).delegation != "remote-signing":
        return None
    with explain_errors(config, table.warehouse, f"table {table}"):
        return refusal_of_listings(load_metadata(catalog, table.within))


def refusal_of_listings(table: Table) -> str | None:
    """Return why a table's files cannot be listed under remote signing; None if the server signs listings.

    Other failures of the signer are left to the job that runs into them.
    """
    properties = table.io.properties
    location = urlsplit(table.location())
    region = properties.get(S3_REGION, properties.get("client.region", ""))
    endpoint = cast(SplitResult, urlsplit(properties.get(S3_ENDPOINT, f"https://{service_host('s3', region)}")))
    bucket = f"{location.netloc}.{endpoint.netloc}/"
    if properties.get("s3.path-style-access") == "true":
        bucket = f"{endpoint.netloc}/{location.netloc}"
    prefix = quote(f"{location.path.strip('/')}/", safe="")
    request = AWSRequest("GET", f"{endpoint.scheme}://{bucket}?list-type=2&prefix={prefix}")
    cast(Any, request).context["client_region"] = region
    try:
        S3V4RestSigner(properties)(request)
    except SignError as error:
        if _error_type(error) in _NOT_SIGNED:
            return (
                "the server does not sign listings for clients (Lakekeeper does from 0.14), so looking for orphan "
                "files needs a warehouse with `delegation: vended`"
            )
    except requests.RequestException:
        pass
    return None


def _error_type(error: SignError) -> str | None:
    response = error.__cause__.response if isinstance(error.__cause__, requests.HTTPError) else None
    try:
        return None if response is None else response.json()["error"]["type"]
    except (ValueError, KeyError, TypeError):
        return None
