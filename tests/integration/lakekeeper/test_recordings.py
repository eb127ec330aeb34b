"""The sandbox responds as a real Lakekeeper of the same version: replay recordings, and list differences."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import Version
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey
from sqlalchemy import create_engine, make_url, text

from tests.integration.lakekeeper.replay import Replayer, list_recordings, with_keys

PLAYED: dict[str, Version] = {"head": "0.14", "0.13.3": "0.13"}
"""The emulated version by folder of recordings."""
FULL_ONLY = pytest.mark.skipif(not os.environ.get("LAKEWRIGHT_FULL"), reason="the same once more on Postgres: test-all")

pytestmark = pytest.mark.xdist_group("lakekeeper-recordings")


def forget_files(aws: Any, folder: str) -> None:
    """Delete the files of earlier replays: recordings of all versions use the same locations, which must be empty."""
    text_of_recordings = "".join(recording.read_text() for recording in list_recordings(folder))
    s3 = aws.client("s3")
    for prefix in set(re.findall(r'"key-prefix": "([^"]+)"', text_of_recordings)):
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket="tenants", Prefix=f"{prefix}/")
        for key in [entry["Key"] for page in pages for entry in page.get("Contents", [])]:
            s3.delete_object(Bucket="tenants", Key=key)


def new_database(server: str, name: str) -> str:
    """Create a database on a Postgres server, and return its URL."""
    url = make_url(server)
    engine = create_engine(url.set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    engine.dispose()
    return url.set(database=name).render_as_string(hide_password=False)


def replay_all(aws: Any, start_lakekeeper: Any, folder: str, database: str | None = None) -> dict[str, list[str]]:
    """Return the differences of each recording of a version, replayed in order on one server."""
    client = start_lakekeeper("--no-system-identity", "--version", PLAYED[folder], bootstrap=False, database=database)
    forget_files(aws, folder)
    variables = {"base": str(client.base_url).rstrip("/"), "s3": aws.endpoint}
    replayer = Replayer(client, variables, with_keys(aws.access_key_id, aws.secret_access_key))
    differences = {recording.name: replayer.replay(recording) for recording in list_recordings(folder)}
    start_lakekeeper.stop(client)  # before its database is deleted
    return differences


@pytest.fixture(scope="module", params=list(PLAYED))
def differences(request: Any, aws: Any, start_lakekeeper: Any) -> dict[str, list[str]]:
    return replay_all(aws, start_lakekeeper, request.param)


@pytest.mark.parametrize("recording", [recording.name for recording in list_recordings("head")])
def test_responses_equal_the_real_servers(recording: str, differences: dict[str, list[str]]) -> None:
    assert differences[recording] == []


@FULL_ONLY
@pytest.mark.parametrize("folder", PLAYED)
def test_responses_are_equal_on_postgres(aws: Any, start_lakekeeper: Any, postgres: str, folder: str) -> None:
    database = new_database(postgres, f"recordings of {folder}")
    assert not any(replay_all(aws, start_lakekeeper, folder, database).values())


@pytest.fixture
def openfga_server(aws: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, str]]]:
    """The endpoint of a 0.13 server with OpenFGA's rules and an OIDC issuer, and a token of each person."""
    client = OAuthClient("people", "unused", audiences=("lakekeeper",), scopes=())
    provider = IdentityProvider({"people": client}, SigningKey())
    with ExitStack() as stack:
        issuer = stack.enter_context(serve(provider.app()))
        settings = Settings(
            database=f"sqlite:///{tmp_path_factory.mktemp('guarded') / 'lakekeeper.db'}",
            version="0.13",
            aws_endpoint=aws.endpoint,
            openid_provider_uri=issuer,
            openid_audiences=("lakekeeper",),
            authorizer="openfga",
        )
        claims = provider.claims(issuer, client, "lakekeeper", "")
        tokens = {
            name: provider.key.sign(
                claims | {"sub": f"human-{name}", "name": name.capitalize(), "email": f"{name}@held.test"}
            )
            for name in ("admin", "alice")
        }
        yield stack.enter_context(serve(create_app(settings))), tokens


@pytest.mark.parametrize("recording", list_recordings("0.13.3", own_server="openfga"), ids=lambda one: one.name)
def test_responses_equal_the_real_servers_with_openfga(
    recording: Any, aws: Any, openfga_server: tuple[str, dict[str, str]]
) -> None:
    endpoint, tokens = openfga_server
    with httpx.Client(base_url=endpoint, timeout=60) as client:
        variables = {"base": endpoint, "s3": aws.endpoint} | tokens
        replayer = Replayer(client, variables, with_keys(aws.access_key_id, aws.secret_access_key))
        assert replayer.replay(recording) == []


@pytest.mark.parametrize("recording", list_recordings("0.13.3", own_server="storage"), ids=lambda one: one.name)
def test_responses_equal_the_real_servers_on_other_storage(recording: Any, tmp_path: Path) -> None:
    settings = Settings(database=f"sqlite:///{tmp_path / 'db'}", version="0.13", skip_storage_validation=True)
    with serve(create_app(settings)) as endpoint, httpx.Client(base_url=endpoint, timeout=60) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        assert Replayer(client, {"base": endpoint}, lambda body: body).replay(recording) == []
