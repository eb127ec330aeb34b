"""Combinations that cannot work are refused with the reason and a way out."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.errors import RefusedFormatError
from lakewright.config_formats.refusals import check_request
from lakewright.config_formats.registry import FORMATS, load_format
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, NoAuth, TokenFileAuth

CLIENT = ClientCredentialsAuth(
    kind="client-credentials",
    token_url="https://idp.example/token",
    client_id="jobs",
    client_secret="env:SECRET",
)


def check(
    format_name: str, version: str = "", auth: CatalogAuth = CLIENT, job: int | None = None, **warehouse: Any
) -> None:
    config_format = load_format(format_name)
    config = CatalogConfig.model_validate(
        {
            "tenant": "acme",
            "uri": "https://lakekeeper.example/catalog",
            "project_id": "acme",
            "auth": auth.model_dump(),
            "warehouses": [{"name": "executions", "id": "1", **warehouse}],
        }
    )
    version = version or (config_format.engine.version if config_format.engine else "")
    check_request(format_name, config_format, ConfigRequest(config, version, job_seconds=job))


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("duckdb", {"delegation": "remote-signing"}, "signs requests .* DuckDB cannot.*set `delegation: vended`"),
        ("trino", {"version": "479"}, "expected Trino 480 or newer, found 479: .*CVE-2026-34214.*upgrade"),
        ("duckdb", {"job": 7200}, "for 3600 seconds, a job takes 7200, and DuckDB 1.5 does not refresh.*token_seconds"),
        ("trino", {"version": "480", "job": 7200}, "Trino 480 does not refresh credentials; Trino 481 and newer do"),
        ("polars", {"job": 901, "credential_seconds": 900}, "for 900 seconds, a job takes 901"),
        ("trino", {"storage": "adls"}, "is on ADLS, for which Trino is not known"),
        ("duckdb", {"storage": "gcs"}, "is on Google Cloud Storage, for which DuckDB is not known"),
        ("texera", {"storage": "adls"}, "executions is on ADLS, and Texera reads S3 only .*choose a warehouse on S3"),
        ("trino", {"auth": TokenFileAuth(kind="token-file", path="/t")}, "reads its token from a file.*--client-id"),
        ("snowflake", {"auth": NoAuth()}, "authenticates by none, which Snowflake cannot do"),
        ("trino", {"auth": CLIENT.model_copy(update={"audience": "lake"})}, "needs the audience lake"),
        ("clickhouse", {"s3_keys": {"access_key_id": "env:A", "secret_access_key": "env:B"}}, "has S3 keys"),
        ("duckdb", {"name": "main"}, "main has the name of a database that DuckDB has itself.*`renamed_from`"),
        ("dbt", {"name": "Temp"}, "Temp has the name of a database that DuckDB has itself"),
        ("trino", {"name": "System"}, "System has the name of a catalog that Trino has itself.*`renamed_from`"),
        ("json", {"version": "1"}, "--engine-version belongs to formats of engines"),
        ("trino", {"version": "new"}, "expected a version such as"),
    ],
)
def test_refused_combination(name: str, options: dict[str, Any], expected: str) -> None:
    with pytest.raises(RefusedFormatError, match=expected) as refusal:
        check(name, **options)
    assert refusal.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("trino", {"version": "481", "job": 86_400}),
        ("spark", {"delegation": "remote-signing", "job": 86_400, "storage": "gcs"}),
        ("duckdb", {"job": 7200, "credential_seconds": 43_200}),
        ("pyiceberg", {"delegation": "remote-signing", "job": 86_400}),
        ("snowflake", {"storage": "adls"}),
        ("flink", {"auth": CLIENT.model_copy(update={"audience": "lake"})}),
    ],
)
def test_possible_combination(name: str, options: dict[str, Any]) -> None:
    check(name, **options)


@pytest.mark.parametrize("name", FORMATS)
def test_catalog_without_authentication(name: str) -> None:
    """Each engine but Snowflake works without authentication, as in a sandbox."""
    if name != "snowflake":
        check(name, auth=NoAuth())


def test_all_problems_are_listed_together() -> None:
    with pytest.raises(RefusedFormatError) as refusal:
        check("trino", "470", job=7200, delegation="remote-signing", storage="gcs")
    assert len(str(refusal.value).splitlines()) == 3
