"""Whether a server signs listings. Lakekeeper does from 0.14 on; without, nobody can look for orphan files."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import requests
from botocore.awsrequest import AWSRequest
from pyiceberg.exceptions import SignError
from pyiceberg.io import S3_ENDPOINT, S3_REGION
from pyiceberg.io.fsspec import S3V4RestSigner
from pyiceberg.table import Table

from lakewright_spark.aws_partition import service_host

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
