"""A prefix to be purged where lists do not show every warehouse: data of an unlisted warehouse is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lakewright.lakekeeper.tenant.tenant_record import TenantRecordProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.provider.conftest import AwsClient
from tests.integration.provider.resource import Props, Resource

pytestmark = pytest.mark.stand_in("plays a bucket that the stack makes on AWS")

TABLE = "0193c5a0-0000-7000-8000-00000000000a/0193c5a0-0000-7000-8000-00000000000b"
METADATA = "metadata/00000-0193c5a0-0000-7000-8000-00000000000c.gz.metadata.json"


@pytest.fixture
def lakekeeper(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[httpx.Client]:
    """A server in this process, of the version that a test requests."""
    version = getattr(request, "param", "0.14")
    settings = Settings(database=f"sqlite:///{tmp_path / 'db'}", version=version, skip_storage_validation=True)
    app = FaultSwitch(create_app(settings))
    with serve(app) as endpoint, httpx.Client(base_url=endpoint, timeout=30) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
        yield client


@pytest.fixture
def factory(lakekeeper: httpx.Client, storage: Props, keys: Props, own_bucket: Props) -> WarehouseFactory:
    return WarehouseFactory(lakekeeper, storage, keys, own_bucket)


class WarehouseFactory:
    """Creates warehouses of projects at prefixes of the bucket."""

    def __init__(self, http: httpx.Client, storage: Props, keys: Props, own_bucket: Props) -> None:
        self.http, self._storage, self._keys, self._own_bucket = http, storage, keys, own_bucket

    @property
    def server(self) -> Props:
        return {"endpoint": str(self.http.base_url).rstrip("/")}

    def create(self, project: str, prefix: str, **storage: str) -> Resource:
        self.http.post("/management/v1/project", json={"project-id": project, "project-name": project})
        resource = Resource(WarehouseProvider())
        resource.up(
            server=self.server,
            project_id=project,
            name=prefix.replace("/", "-"),
            storage=self._storage | {"key_prefix": prefix} | storage,
            credential=self._keys,
            deletion="purge",
            own_bucket=self._own_bucket,
        )
        return resource


def list_keys(aws: AwsClient, bucket: str) -> list[str]:
    return [entry["Key"] for entry in aws("s3").list_objects_v2(Bucket=bucket).get("Contents", [])]


def write_objects(aws: AwsClient, bucket: str, *keys: str) -> None:
    for key in keys:
        aws("s3").put_object(Bucket=bucket, Key=key, Body=b"1")


@pytest.mark.parametrize("lakekeeper", ["0.13"], indirect=True)
def test_purge_spares_an_inactive_neighbour_of_0_13(
    factory: WarehouseFactory, aws: AwsClient, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outer, inner = factory.create("one", "main"), factory.create("two", "main/inner")
    factory.http.post(f"/management/v1/warehouse/{inner.id}/deactivate").raise_for_status()
    kept_keys = [f"main/inner/{TABLE}/data/1.parquet", f"main/inner/{TABLE}/{METADATA}"]
    write_objects(aws, bucket, *kept_keys, "main/notes.txt", f"main/{TABLE}/data/1.parquet")

    outer.destroy()

    assert list_keys(aws, bucket) == kept_keys
    printed = capfd.readouterr().err
    assert "keeping objects under main/inner/ in main/: they may be tables of another warehouse" in printed
    assert "lists active warehouses only" in printed


def test_purge_spares_a_warehouse_of_a_hidden_project(
    factory: WarehouseFactory, aws: AwsClient, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    outer, _ = factory.create("one", "main"), factory.create("two", "main/inner")
    hide_lists(factory.http)
    kept_key = f"main/inner/{TABLE}/{METADATA}"
    write_objects(aws, bucket, kept_key, "main/notes.txt")

    outer.destroy()

    assert list_keys(aws, bucket) == [kept_key]
    assert "one, two could not be listed." in capfd.readouterr().err


@pytest.mark.parametrize("lakekeeper", ["0.13"], indirect=True)
def test_purge_deletes_all_of_its_own_data_on_0_13(
    factory: WarehouseFactory, aws: AwsClient, bucket: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """A table that was dropped without a purge lies at the warehouse's default locations."""
    alone = factory.create("one", "main")
    write_objects(aws, bucket, "main/notes.txt", f"main/{TABLE}/data/1.parquet", f"main/{TABLE}/{METADATA}")
    alone.destroy()
    assert list_keys(aws, bucket) == []
    assert "deleting tables that were dropped without a purge under main/" in capfd.readouterr().err


@pytest.mark.parametrize("lakekeeper", ["0.13"], indirect=True)
def test_preview_warns_that_lists_are_incomplete(
    factory: WarehouseFactory, own_bucket: Props, capfd: pytest.CaptureFixture[str]
) -> None:
    purged_warehouse = {"bucket": own_bucket["bucket"], "deletion": "purge", "key_prefix": "main"}
    record = {
        "server": factory.server,
        "tenant": "one",
        "warehouses": {"main": purged_warehouse},
        "buckets": {"main": own_bucket},
    }
    assert Resource(TenantRecordProvider()).preview(**record) == "create"
    assert "not every warehouse can be seen. More warehouses may exist: Lakekeeper 0.13" in capfd.readouterr().err


def test_purge_ignores_a_bucket_of_another_store(factory: WarehouseFactory, aws: AwsClient, bucket: str) -> None:
    """Two stores may have buckets of one name."""
    outer = factory.create("one", "main")
    factory.create("two", "main", endpoint="https://minio.example:9000")
    write_objects(aws, bucket, "main/notes.txt")
    outer.destroy()
    assert list_keys(aws, bucket) == []


def test_one_lookup_serves_all_purges_of_a_run(factory: WarehouseFactory) -> None:
    """Six warehouses: one list of projects, and a list of warehouses for each of four projects (with the default)."""
    warehouses = [
        factory.create(project, f"{project}/{number}") for project in ("one", "two", "three") for number in (1, 2)
    ]
    factory.http.delete("/sandbox/v1/calls").raise_for_status()

    for warehouse in warehouses:
        warehouse.destroy()

    calls = [call["path"] for call in factory.http.get("/sandbox/v1/calls").json()["calls"] if call["method"] == "GET"]
    assert calls.count("/management/v1/project-list") == 1
    assert calls.count("/management/v1/warehouse") == 4


def test_replaced_warehouse_does_not_spare_its_prefix(factory: WarehouseFactory, aws: AwsClient, bucket: str) -> None:
    """The lookup of a run may still list a warehouse that the run has deleted."""
    factory.create("one", "main").destroy()
    recreated = factory.create("one", "main")
    write_objects(aws, bucket, "main/notes.txt")
    recreated.destroy()
    assert list_keys(aws, bucket) == []


def hide_lists(http: httpx.Client) -> None:
    rule = {"action": "answer", "method": "GET", "path": "/management/v1/warehouse", "count": None, "status": 403}
    http.put("/sandbox/v1/faults", json=[rule]).raise_for_status()
