"""Holds back orphan removal where the server does not sign the listing that it needs."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote, urlsplit

import requests
from botocore.awsrequest import AWSRequest
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import SignError
from pyiceberg.io import S3_ENDPOINT, S3_REGION
from pyiceberg.io.fsspec import S3V4RestSigner
from pyiceberg.table import Table

from lakewright_spark.aws_partition import service_host
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JobFailedError, NoSuchResultError
from lakewright_spark.policies.model import Job
from lakewright_spark.pyiceberg_client.catalog import explained
from lakewright_spark.scheduler.due import Decision
from lakewright_spark.scheduler.plan import TablePlan, WarehousePlan
from lakewright_spark.table_identifier import TableIdentifier

_NOT_SIGNED = frozenset({"UriNotS3", "UriNoPath", "RequestUriMismatch", "NoSuchTableLocationException"})
"""`error.type` of Lakekeeper 0.11 to 0.13 for a listing: it reads the bucket's address as that of an object."""


def refusal_of_listings(table: Table) -> str | None:
    """Return why a table's files cannot be listed under remote signing; None if the server signs it.

    Any other failure of the signer is left to the job that meets it.
    """
    properties = table.io.properties
    location = urlsplit(table.location())
    region = properties.get(S3_REGION, properties.get("client.region", ""))
    endpoint = urlsplit(properties.get(S3_ENDPOINT, f"https://{service_host('s3', region)}"))
    bucket = f"{location.netloc}.{endpoint.netloc}/"
    if properties.get("s3.path-style-access") == "true":
        bucket = f"{endpoint.netloc}/{location.netloc}"
    prefix = quote(f"{location.path.strip('/')}/", safe="")
    asked = AWSRequest("GET", f"{endpoint.scheme}://{bucket}?list-type=2&prefix={prefix}")
    asked.context["client_region"] = region
    try:
        S3V4RestSigner(properties)(asked)
    except SignError as error:
        if _type_of(error) in _NOT_SIGNED:
            return (
                "the server signs no listings for clients (Lakekeeper does from 0.14 on), so looking for orphan files "
                "needs a warehouse with `delegation: vended`"
            )
    except requests.RequestException:
        pass
    return None


def _type_of(error: SignError) -> str | None:
    answer = error.__cause__.response if isinstance(error.__cause__, requests.HTTPError) else None
    try:
        return None if answer is None else answer.json()["error"]["type"]
    except (ValueError, KeyError, TypeError):
        return None


NEEDED_BY: Job = "orphan-files"
"""Staged files are deleted by their names, which every server signs."""


def reason_for_no_listing(config: CatalogConfig, catalog: Catalog, table: TableIdentifier) -> str | None:
    """Return why the files of this table cannot be listed; None where they can."""
    if config.warehouse(table.warehouse).delegation != "remote-signing":
        return None
    with explained(config, table.warehouse, f"table {table}"):
        return refusal_of_listings(catalog.load_table(table.within))


def held_without_listing(config: CatalogConfig, catalog: Catalog, plan: WarehousePlan) -> WarehousePlan:
    """Return the plan with orphan removal held where nothing can be listed. One table is asked for all."""
    reason: str | None = None
    for one in plan.tables:
        if any(decision.job == NEEDED_BY for decision in one.due):
            try:
                reason = reason_for_no_listing(config, catalog, one.facts.table)
                break
            except (NoSuchResultError, JobFailedError):
                continue  # dropped or damaged meanwhile: another one says as much
    if reason is None:
        return plan
    return replace(plan, tables=tuple(_held(one, reason) for one in plan.tables))


def _held(plan: TablePlan, reason: str) -> TablePlan:
    def held(decision: Decision) -> Decision:
        if decision.job != NEEDED_BY or decision.verdict != "due":
            return decision
        return replace(decision, verdict="held", reason=reason)

    return replace(plan, decisions=tuple(held(one) for one in plan.decisions))
