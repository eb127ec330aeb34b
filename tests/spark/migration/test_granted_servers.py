"""Grants move between two projects of a real Lakekeeper that enforces them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from granted_projects import ORDERS, SALES, WAREHOUSE, Side, fill_sides
from lakewright_spark.catalog.auth import S3Keys
from lakewright_spark.migration.actions import Action
from migration_catalogs import Catalogs
from projects import Project, post

from tests.real_servers import KEY_ID, SECRET, RealServers

NEEDS_GRANTS = "needs `make test-real` on a Lakekeeper that enforces grants"


@pytest.fixture
def users(real: RealServers | None) -> Iterator[tuple[str, str]]:
    """Create two users for the time of the test."""
    if real is None or real.token_url is None:
        pytest.skip(NEEDS_GRANTS)
    names = [f"oidc~{real.run}-{name}" for name in ("ann", "bob")]
    with real.http() as server:
        for name in names:
            post(server, "/management/v1/user", {"id": name, "name": name, "user-type": "human"})
        yield names[0], names[1]
        for name in names:
            server.delete(f"/management/v1/user/{name}").raise_for_status()


def create_side(project: Project, name: str, roles: list[str]) -> Side:
    side_project = Project(project.server, project.sandbox, project.real)
    warehouse = side_project.warehouse(name)
    s3 = {"s3.endpoint": project.sandbox.aws.endpoint, "s3.region": project.sandbox.aws.region}
    keys = S3Keys(access_key_id=f"env:{KEY_ID}", secret_access_key=f"env:{SECRET}")
    config = side_project.config(
        warehouse.model_copy(update={"s3": s3 | {"s3.path-style-access": "true"}, "s3_keys": keys})
    )
    ids: dict[str, str] = {}
    for role in roles:
        headers = {"x-project-id": side_project.id}
        response = project.server.post("/management/v1/role", json={"name": role}, headers=headers)
        ids[role] = response.raise_for_status().json()["id"]
    operator = project.server.get("/management/v1/whoami").raise_for_status().json()["id"]
    return Side(config, ids, operator)


def test_grants_move_and_return(project: Project, users: tuple[str, str], tmp_path: Path) -> None:
    ann, bob = users
    source, target = create_side(project, "old", ["analysts", "auditors"]), create_side(project, "new", ["Analysts"])
    fill_sides(source, target, ann, bob)
    catalogs = Catalogs(source.config, target.config, tmp_path / "migration.db", project.sandbox, "old", "new")
    plan = catalogs.migrate(Action.PLAN, grants=True, copy=True).plan
    assert f"namespace sales: select of user {ann}" in plan.grants
    assert "table sales.orders: modify of role analysts" in plan.grants
    assert [loss for loss in plan.losses if "select of role auditors" in loss and "has no such role" in loss]
    catalogs.migrate(copy=True, grants=True)
    catalogs.migrate(Action.CUT_OVER, grants=True)
    assert target.list_grants(ORDERS) == {("modify", "analysts")}
    assert target.list_grants(SALES) == {("select", ann), ("describe", bob)}
    assert target.list_grants(WAREHOUSE) == {("describe", "analysts")}
    catalogs.migrate(Action.UNDO)
    assert target.list_grants(SALES) == {("describe", bob)}
    assert target.list_grants(WAREHOUSE) == set()
    assert source.list_grants(ORDERS) == {("modify", "analysts"), ("select", "auditors")}
