"""Task queue configurations: set, read, restored, adopted, and kept when the resource is deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from lakewright.lakekeeper.provider.errors import DeletedOutsideStackError, NotOwnedError
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.provider.resource import Props, Resource

FORMER_NAMES = {"soft_deletion": "tabular_expiration"}
"""The releases' name of a queue, which head accepts too."""


@pytest.fixture
def queue(light_project: Props, light_warehouse: Resource) -> Props:
    """A declared configuration of a warehouse's queue."""
    queue_args = {"server": light_project["server"], "warehouse_id": light_warehouse.id, "queue": "soft_deletion"}
    return {**queue_args, "max_seconds_since_last_heartbeat": 120}


@pytest.fixture
def enterprise(tmp_path: Path, unique: str) -> Iterator[Props]:
    """A project on a server that has queues for maintenance."""
    settings = Settings(
        database=f"sqlite:///{tmp_path / 'lakekeeper.db'}", skip_storage_validation=True, maintenance_queues=True
    )
    with serve(create_app(settings)) as endpoint, httpx.Client(base_url=endpoint, timeout=60) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        client.post("/management/v1/project", json={"project-id": unique, "project-name": unique}).raise_for_status()
        yield {"server": {"endpoint": endpoint}, "project_id": unique}


@pytest.fixture
def cleanup(light_project: Props) -> Props:
    return {
        **light_project,
        "queue": "task_log_cleanup",
        "config": {"cleanup-period": "P1D", "retention-period": "P30D"},
    }


def url(queue_props: Props) -> str:
    owner = f"warehouse/{queue_props['warehouse_id']}" if "warehouse_id" in queue_props else "project"
    return f"/management/v1/{owner}/task-queue/{FORMER_NAMES.get(queue_props['queue'], queue_props['queue'])}/config"


def headers(queue_props: Props) -> Props:
    return {"x-project-id": queue_props["project_id"]} if "project_id" in queue_props else {}


def read_config(http: httpx.Client, queue_props: Props) -> Props:
    return http.get(url(queue_props), headers=headers(queue_props)).raise_for_status().json()


def set_config(http: httpx.Client, queue_props: Props, **body: Any) -> None:
    wire = {key.replace("_", "-"): value for key, value in body.items()}
    http.post(url(queue_props), json={"queue-config": {}, **wire}, headers=headers(queue_props)).raise_for_status()


def create_config(queue_props: Props) -> Resource:
    resource = Resource(TaskQueueConfigProvider())
    assert resource.up(**queue_props) == "create"
    return resource


def test_warehouse_queue_is_set_and_changed_in_place(queue: Props, light: httpx.Client) -> None:
    resource = create_config(queue)
    assert resource.id == f"{queue['warehouse_id']}/soft_deletion"
    assert read_config(light, queue)["max-seconds-since-last-heartbeat"] == 120
    assert (resource.up(**queue), resource.refresh()) == ("same", "same")
    assert resource.up(**queue | {"max_seconds_since_last_heartbeat": 60}) == "update"
    assert read_config(light, queue)["max-seconds-since-last-heartbeat"] == 60


def test_project_log_cleanup_is_set_and_read(cleanup: Props, light: httpx.Client) -> None:
    resource = create_config(cleanup)
    assert read_config(light, cleanup)["queue-config"] == {**cleanup["config"], "queue-name": "task_log_cleanup"}
    assert (resource.up(**cleanup), resource.refresh()) == ("same", "same")


@pytest.mark.parametrize(
    "config",
    [{"cleanup-period": "P1D", "retention-period": "P7D"}, {"cleanup-period": "PT5M", "retention-period": None}],
)
def test_configuration_drift_is_restored(cleanup: Props, light: httpx.Client, config: Props) -> None:
    resource = create_config(cleanup)
    set_config(light, cleanup, queue_config=config)
    assert resource.refresh() == "update"
    assert resource.up(**cleanup) == "update"
    assert read_config(light, cleanup)["queue-config"] == {**cleanup["config"], "queue-name": "task_log_cleanup"}


def test_heartbeat_drift_is_restored(queue: Props, light: httpx.Client) -> None:
    resource = create_config(queue)
    set_config(light, queue, max_seconds_since_last_heartbeat=7)
    assert resource.refresh() == "update"
    assert resource.up(**queue) == "update"
    assert read_config(light, queue)["max-seconds-since-last-heartbeat"] == 120


def test_undeclared_heartbeat_is_the_servers_to_keep(queue: Props, light: httpx.Client) -> None:
    resource = create_config(queue)
    del queue["max_seconds_since_last_heartbeat"]
    assert resource.up(**queue) == "same"
    set_config(light, queue, max_seconds_since_last_heartbeat=7)
    assert resource.up(**queue) == "same"


def test_equal_duration_in_another_form_is_no_drift(cleanup: Props, light: httpx.Client) -> None:
    resource = create_config(cleanup)
    set_config(light, cleanup, queue_config={"cleanup-period": "PT24H", "retention-period": "PT720H"})
    assert resource.refresh() == "same"


def test_old_queue_name_means_the_same_queue(queue: Props) -> None:
    resource = create_config(queue)
    assert resource.up(**queue | {"queue": "tabular_expiration"}) == "same"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"queue": "task_log_cleanup"}, "belongs to a project"),
        ({"project_id": "other"}, "belongs to a warehouse"),
        ({"warehouse_id": None}, "belongs to a warehouse"),
    ],
    ids=str,
)
def test_queue_belongs_to_a_warehouse_or_to_a_project(queue: Props, change: Props, expected: str) -> None:
    assert expected in Resource(TaskQueueConfigProvider()).failures(**queue | change)[""]


@pytest.mark.parametrize("period", ["30 days", "P1M", 30])
def test_preview_refuses_a_period_that_is_no_duration(cleanup: Props, period: Any) -> None:
    failures = Resource(TaskQueueConfigProvider()).failures(**cleanup | {"config": {"retention-period": period}})
    assert "`config.retention-period` must be an ISO 8601 duration" in failures[""]


def test_preview_refuses_a_queue_that_the_server_lacks(queue: Props) -> None:
    failures = Resource(TaskQueueConfigProvider()).failures(**queue | {"queue": "expire_snapshots"})
    queue_names = failures["queue"].partition("has no queue `expire_snapshots`; it has ")[2]
    assert queue_names.startswith(
        ("tabular_expiration, tabular_purge, task_log_cleanup", "soft_deletion, tabular_purge")
    )


def test_queues_of_another_edition_are_set_alike(enterprise: Props, light_warehouse_props: Props) -> None:
    warehouse = Resource(WarehouseProvider())
    warehouse.up(**{**light_warehouse_props, **enterprise})
    config = {"enable-expire-snapshots": True, "min-snapshots-to-keep": 3}
    warehouse_args = {"server": enterprise["server"], "warehouse_id": warehouse.id}

    resource = create_config({**warehouse_args, "queue": "expire_snapshots", "config": config})
    assert resource.refresh() == "same"
    assert (
        resource.up(**warehouse_args, queue="expire_snapshots", config={"enable-expire-snapshots": False}) == "update"
    )


def test_another_queue_replaces_and_the_old_queue_remains(queue: Props, light: httpx.Client) -> None:
    resource = create_config(queue)
    assert resource.up(**queue | {"queue": "tabular_purge"}) == "replace"
    assert read_config(light, queue)["max-seconds-since-last-heartbeat"] == 120


def test_existing_configuration_needs_adopt(
    queue: Props, light: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    set_config(light, queue, max_seconds_since_last_heartbeat=7)
    with pytest.raises(NotOwnedError, match=r"max_seconds_since_last_heartbeat: 7 -> 120.*`adopt=True`"):
        create_config(queue)
    assert create_config(queue | {"adopt": True}).refresh() == "same"
    assert "is adopted; this changes: max_seconds_since_last_heartbeat: 7 -> 120" in capsys.readouterr().err


def test_inactive_warehouse_is_activated_for_the_update(
    queue: Props, light: httpx.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse = f"/management/v1/warehouse/{queue['warehouse_id']}"
    light.post(f"{warehouse}/deactivate").raise_for_status()
    resource = create_config(queue)
    assert light.get(warehouse).json()["status"] == "inactive"
    assert resource.refresh() == "same"
    assert "cannot be seen while the warehouse is inactive" in capsys.readouterr().err


def test_configuration_is_deleted_with_its_warehouse(queue: Props, light: httpx.Client) -> None:
    """Deleting the resource alone keeps the configuration."""
    resource = create_config(queue)
    resource.provider.delete(resource.id, resource.outs)
    assert read_config(light, queue)["max-seconds-since-last-heartbeat"] == 120
    light.delete(f"/management/v1/warehouse/{queue['warehouse_id']}").raise_for_status()
    assert resource.refresh() == "delete"
    with pytest.raises(DeletedOutsideStackError, match=r"warehouse .* does not exist"):
        Resource(TaskQueueConfigProvider()).up(**queue)
