"""Rules of released servers that the recordings lack, as observed on Lakekeeper 0.13.3."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.database.models import GrantRow
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import Version
from lakewright_sandbox.tokens.app import IdentityProvider
from lakewright_sandbox.tokens.clients import OAuthClient
from lakewright_sandbox.tokens.keys import SigningKey

from tests.integration.lakekeeper.rules import get_refusal

V1 = "/management/v1"
SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "id", "required": True, "type": "long"}]}

Start = Callable[..., httpx.Client]


@pytest.fixture(scope="module")
def start(aws: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """Return a function that starts a server of a version, with settings, in this process."""
    with ExitStack() as stack:

        def start(version: Version, **settings: Any) -> httpx.Client:
            database = f"sqlite:///{tmp_path_factory.mktemp('released') / 'lakekeeper.db'}"
            app = create_app(Settings(database=database, version=version, aws_endpoint=aws.endpoint, **settings))
            client = stack.enter_context(httpx.Client(base_url=stack.enter_context(serve(app)), timeout=30))
            client.post(f"{V1}/bootstrap", json={"accept-terms-of-use": True})
            return client

        yield start


@pytest.fixture(scope="module")
def release_client(start: Start) -> httpx.Client:
    return start("0.13")


@pytest.fixture(scope="module")
def catalog(release_client: httpx.Client, make_warehouse: Any) -> str:
    """The catalog's path of a warehouse with a namespace `Ab`."""
    path = f"/catalog/v1/{make_warehouse(release_client, f'rules-{uuid.uuid4().hex}')}"
    assert release_client.post(f"{path}/namespaces", json={"namespace": ["Ab"]}).status_code == 200
    return path


def new_table(client: httpx.Client, catalog: str, **fields: Any) -> httpx.Response:
    body = {"name": f"t{uuid.uuid4().hex}", "schema": SCHEMA, **fields}
    return client.post(f"{catalog}/namespaces/Ab/tables", json=body)


def test_a_namespace_is_spelled_as_requested(release_client: httpx.Client, catalog: str) -> None:
    assert release_client.get(f"{catalog}/namespaces/aB").json()["namespace"] == ["aB"]


def test_0_11_spells_a_namespace_as_created(start: Start, make_warehouse: Any) -> None:
    client = start("0.11")
    path = f"/catalog/v1/{make_warehouse(client, 'case')}/namespaces"
    client.post(path, json={"namespace": ["Ab"]}).raise_for_status()
    assert client.get(f"{path}/aB").json()["namespace"] == ["Ab"]


def test_a_warehouse_is_found_in_any_case(release_client: httpx.Client, make_warehouse: Any) -> None:
    warehouse = make_warehouse(release_client, "CaSe")
    config = release_client.get("/catalog/v1/config", params={"warehouse": "cAsE"})
    assert config.json()["defaults"]["prefix"] == warehouse


def test_a_staged_table_has_a_null_metadata_location(release_client: httpx.Client, catalog: str) -> None:
    assert new_table(release_client, catalog, **{"stage-create": True}).json()["metadata-location"] is None


def test_a_table_is_not_created_on_existing_files(release_client: httpx.Client, catalog: str, aws: Any) -> None:
    sibling_location = new_table(release_client, catalog).json()["metadata"]["location"]
    location = f"{sibling_location.rpartition('/')[0]}/{uuid.uuid4().hex}"
    bucket, _, key = location.removeprefix("s3://").partition("/")
    aws.client("s3").put_object(Bucket=bucket, Key=f"{key}/left", Body=b"")
    assert get_refusal(new_table(release_client, catalog, location=location)) == (400, "InvalidLocation")


def test_a_fixed_property_cannot_be_changed(release_client: httpx.Client, catalog: str) -> None:
    response = new_table(release_client, catalog, name="fixed", properties={"encryption.key-id": "a"})
    assert response.status_code == 200
    path = f"{catalog}/namespaces/Ab/tables/fixed"
    changed = {"action": "set-properties", "updates": {"encryption.key-id": "b"}}
    removed = {"action": "remove-properties", "removals": ["encryption.key-id"]}
    kinds = [
        get_refusal(release_client.post(path, json={"requirements": [], "updates": [update]}))
        for update in (changed, removed)
    ]
    assert kinds == [(400, "ImmutablePropertyModification"), (400, "ImmutablePropertyRemoval")]


def test_storage_errors_outside_validation(
    release_client: httpx.Client, start: Start, aws: Any, make_warehouse: Any
) -> None:
    """A refusal is 412 and a missing bucket 400; in a validation both are 400."""
    client = start("0.13", skip_storage_validation=True)
    refused = f"/catalog/v1/{make_warehouse(client, 'gone', bucket='not-there-at-all')}"
    client.post(f"{refused}/namespaces", json={"namespace": ["Ab"]}).raise_for_status()
    assert get_refusal(new_table(client, refused)) == (400, "NotFound")


@pytest.mark.parametrize("version", ["0.13", "0.14"])
def test_listings_are_signed_from_head_on(start: Start, make_warehouse: Any, aws: Any, version: Version) -> None:
    client = start(version)
    catalog = f"/catalog/v1/{make_warehouse(client, f'signing-{version}')}"
    client.post(f"{catalog}/namespaces", json={"namespace": ["Ab"]}).raise_for_status()
    table = new_table(client, catalog).json()["metadata"]
    prefix = table["location"].removeprefix("s3://tenants/")
    path = f"/catalog/v1/signer/{catalog.rpartition('/')[2]}/tabular-id/{table['table-uuid']}/v1/aws/s3/sign"
    request = {"region": "us-east-1", "method": "GET", "headers": {}}
    listing = client.post(path, json=request | {"uri": f"{aws.endpoint}/tenants?list-type=2&prefix={prefix}/"})
    assert listing.status_code == (200 if version == "0.14" else 400)
    if version == "0.13":
        assert get_refusal(listing) == (400, "UriNotS3")
    wrong = client.post(path, json=request | {"region": "elsewhere", "uri": f"{aws.endpoint}/tenants/{prefix}/x"})
    assert get_refusal(wrong) == (400, "RegionMismatch")


@pytest.mark.parametrize(("version", "status"), [("0.11", 200), ("0.13", 400), ("0.14", 400)])
def test_tokens_with_roles_need_a_project(start: Start, version: Version, status: int) -> None:
    client = OAuthClient("ci", "unused", audiences=("lakekeeper",), scopes=())
    provider = IdentityProvider({"ci": client}, SigningKey())
    with serve(provider.app()) as issuer:
        settings = {"openid_provider_uri": issuer, "openid_roles_claim": "roles", "default_project": ""}
        server = start(version, **settings)
        claims = provider.claims(issuer, client, "lakekeeper", "") | {"roles": ["a"]}
        headers = {"authorization": f"Bearer {provider.key.sign(claims)}"}
        bare = server.get(f"{V1}/info", headers=headers)
        assert bare.status_code == status
        if status == 400:
            assert get_refusal(bare) == (400, "MissingProjectId")
        assert server.get(f"{V1}/info", headers=headers | {"x-project-id": "p"}).status_code == 200


@pytest.mark.parametrize(
    ("path", "claims", "status"),
    [
        ("realm_access.roles", {"realm_access": {"roles": ["a"]}}, 400),
        ("roles", {"roles": "admin"}, 400),
        ("roles", {"roles": [5, "a"]}, 400),
        ("roles", {"roles": []}, 200),
        ("roles", {"roles": [5]}, 200),
        ("roles", {"roles": {"a": "b"}}, 200),
        ("realm_access.roles", {"realm_access": ["roles"]}, 200),
    ],
)
def test_roles_are_texts_at_a_path(start: Start, path: str, claims: dict[str, Any], status: int) -> None:
    client = OAuthClient("ci", "unused", audiences=("lakekeeper",), scopes=())
    provider = IdentityProvider({"ci": client}, SigningKey())
    with serve(provider.app()) as issuer:
        server = start("0.13", openid_provider_uri=issuer, openid_roles_claim=path, default_project="")
        token = provider.key.sign(provider.claims(issuer, client, "lakekeeper", "") | claims)

        assert server.get(f"{V1}/info", headers={"authorization": f"Bearer {token}"}).status_code == status


def test_leftover_relations_are_a_conflict(start_openfga: Any) -> None:
    people = start_openfga(version="0.13")
    project = f"p{uuid.uuid4().hex}"
    with people.app.state.lakekeeper.database.write() as session:
        leftover_relation = {"object_kind": "project", "object_id": project, "relation": "describe"}
        session.add(
            GrantRow(
                id=str(uuid.uuid4()), **leftover_relation, subject_kind="user", subject_id="oidc~ann", created_at=0
            )
        )
    response = people("root").post(f"{V1}/project", json={"project-id": project, "project-name": "again"})
    assert get_refusal(response) == (409, "ObjectHasRelations")
