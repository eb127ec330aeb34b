"""Formats of engines: each text, by engine and version, is compared with a document that was checked by hand.

`LAKEWRIGHT_RECORD=1 pytest tests/unit/config_formats` writes the documents again; compare them with each engine's
documentation before a commit.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import yaml
from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.properties import PROPERTIES
from lakewright.config_formats.refusals import check_request, list_notes
from lakewright.config_formats.registry import FORMATS, load_format
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, NoAuth, TokenAuth

DOCUMENTS = Path(__file__).with_name("documents")
RECORDS = bool(os.environ.get("LAKEWRIGHT_RECORD"))
CLIENT = ClientCredentialsAuth(
    kind="client-credentials",
    token_url="https://idp.example/realms/acme/protocol/openid-connect/token",
    client_id="acme-jobs",
    client_secret="env:ACME_CLIENT_SECRET",
    scope="lakekeeper",
)
SECRET = "s3cr3t-value-of-the-client"
ENGINES = [name for name in FORMATS if load_format(name).engine]
VERSIONS = [
    ("trino", "480"),
    ("trino", "482"),
    ("flink", "2.1"),
    ("duckdb", "1.5"),
    ("duckdb", "2.0"),
    ("starrocks", "4.0"),
    ("doris", "3.1"),
    ("doris", "3.1.2"),
    ("clickhouse", "26.3"),
    ("snowflake", "2026"),
    ("dremio", "26.0"),
    ("dbt", "1.11"),
    ("dbt", "2.0"),
    ("polars", "2.1"),
    ("daft", "0.7"),
    ("pyiceberg", "0.12"),
    ("spark", "4.1"),
]


def make_config(auth: CatalogAuth = CLIENT) -> CatalogConfig:
    return CatalogConfig(
        tenant="acme",
        uri="https://lakekeeper.example/catalog",
        project_id="acme",
        auth=auth,
        warehouses=[
            CatalogWarehouse(name="executions", id="1", s3={"s3.region": "us-west-2", "client.region": "us-west-2"}),
            CatalogWarehouse(
                name="raw-data",
                id="2",
                s3={
                    "s3.region": "local",
                    "client.region": "local",
                    "s3.endpoint": "https://store.example",
                    "s3.path-style-access": "true",
                },
            ),
        ],
    )


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_documents(name: str, version: str) -> None:
    request = ConfigRequest(make_config(), version)
    config_format = load_format(name)
    check_request(name, config_format, request)

    files = config_format.render(request)

    folder = DOCUMENTS / f"{name}-{version}"
    if RECORDS:
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / f"{file}.txt").write_text(text)
    assert {f"{file}.txt" for file in files} == {path.name for path in folder.iterdir()}
    for file, text in files.items():
        assert text == (folder / f"{file}.txt").read_text()


def test_each_engine_has_a_document() -> None:
    assert {name for name, _ in VERSIONS} == {*ENGINES}


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize("kind", ["client", "token"])
def test_secrets_are_references(name: str, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither a value of the environment nor the content of a file is in a text or note."""
    monkeypatch.setenv("ACME_CLIENT_SECRET", SECRET)
    (tmp_path / "secret").write_text(SECRET)
    for reference in ("env:ACME_CLIENT_SECRET", f"file:{tmp_path}/secret"):
        auth = (
            CLIENT.model_copy(update={"client_secret": reference})
            if kind == "client"
            else TokenAuth(kind="token", token=reference)
        )
        config_format = load_format(name)
        assert config_format.engine
        request = ConfigRequest(make_config(auth), config_format.engine.version)

        text = "\n".join([*config_format.render(request).values(), *list_notes(config_format, request)])

        assert SECRET not in text
        if auth.kind in config_format.engine.auth_kinds:
            variable = "ACME_" if reference.startswith("env") else "LAKEKEEPER_"
            assert variable in text, "the text or a note names the variable"


@pytest.mark.parametrize("name", ENGINES)
def test_no_class_of_this_project_is_needed(name: str) -> None:
    config_format = load_format(name)
    assert config_format.engine
    text = "".join(config_format.render(ConfigRequest(make_config(), config_format.engine.version)).values())

    assert "lakewright_spark" not in text
    assert "lakewright.spark" not in text
    if config_format.engine.refreshing:
        request = ConfigRequest(make_config(), config_format.engine.version, refreshing=True)
        text = "".join(config_format.render(request).values())
        assert re.search(r"lakewright_spark\.|lakewright\.spark\.", text)
        assert any("this configuration uses" in note for note in list_notes(config_format, request))


@pytest.mark.parametrize("name", ["duckdb", "dbt"])
def test_note_names_the_scope_that_duckdb_requests(name: str) -> None:
    config_format = load_format(name)
    assert config_format.engine
    config = make_config(CLIENT.model_copy(update={"scope": None}))

    notes = list_notes(config_format, ConfigRequest(config, config_format.engine.version))

    assert any("requests the scope `PRINCIPAL_ROLE:ALL`" in note for note in notes)


def test_fusion_without_authentication_requests_no_token() -> None:
    """DuckDB would request a token."""
    files = load_format("dbt").render(ConfigRequest(make_config(NoAuth()), "2.0"))

    catalogs = yaml.safe_load(files["catalogs.yml"])["catalogs"]
    assert [catalog["config"]["duckdb"]["authorization_type"] for catalog in catalogs] == ["NONE", "NONE"]
    assert yaml.safe_load(files["profiles.yml"])["acme"]["outputs"]["lakekeeper"]["secrets"] == []


def test_names_of_properties_are_used_once() -> None:
    """Two rows of a name exclude each other: by the value that they need, or by versions."""
    for table, rows in PROPERTIES.items():
        keys = [(row.name, row.needs, row.since, row.before) for row in rows]
        assert len(keys) == len(set(keys)), table
