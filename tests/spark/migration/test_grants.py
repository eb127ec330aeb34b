"""Grants move between two warehouses of a Lakekeeper that enforces them, and other catalogs have none to move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from granted_projects import ORDERS, SALES, WAREHOUSE, Side, fill_sides
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog.auth import S3Keys, TokenAuth
from lakewright_spark.errors import AccessDeniedError, MigrationError
from lakewright_spark.migration import grants
from lakewright_spark.migration.actions import Action, migrate_tables
from lakewright_spark.migration.grant_catalog import GrantCatalog, ObjectKey
from lakewright_spark.migration.ledger import Step, open_ledger
from migration_catalogs import NEW, OLD, Catalogs, build_catalogs, build_rows
from projects import Project, post

from tests.named_tokens import TokensAsNames

pytestmark = pytest.mark.stand_in("plays users by their names")
TARGET_GRANT = ("describe", "oidc~bob")
"""A grant that the target has before the migration."""


@contextmanager
def run_guarded_server(sandbox: Sandbox, folder: Path) -> Iterator[httpx.Client]:
    """Run a server that enforces grants; yield a client of the user who may do everything."""
    settings = Settings(
        database=f"sqlite:///{folder / 'lakekeeper.db'}",
        aws_endpoint=sandbox.aws.endpoint,
        credentials_file=sandbox.credentials_file,
        aws_system_identity=True,
        authorizer="openfga",
    )
    headers = {"authorization": "Bearer operator"}
    with (
        serve(TokensAsNames(create_app(settings))) as endpoint,
        httpx.Client(base_url=endpoint, headers=headers, timeout=60) as client,
    ):
        post(client, "/management/v1/bootstrap", {"accept-terms-of-use": True, "is-operator": True})
        yield client


@pytest.fixture(scope="module")
def servers(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[httpx.Client, httpx.Client]]:
    """Return the server of the source and the server of the target, which knows the user `ann`."""
    with (
        run_guarded_server(sandbox, tmp_path_factory.mktemp("source")) as source,
        run_guarded_server(sandbox, tmp_path_factory.mktemp("target")) as target,
    ):
        post(target, "/management/v1/user", {"id": "oidc~ann", "name": "Ann", "user-type": "human"})
        yield source, target


def create_side(server: httpx.Client, sandbox: Sandbox, name: str, roles: list[str]) -> Side:
    project = Project(server, sandbox)
    s3 = {"s3.endpoint": sandbox.aws.endpoint, "s3.region": sandbox.aws.region, "s3.path-style-access": "true"}
    keys = S3Keys(access_key_id="env:STORE_USER", secret_access_key="env:STORE_PASSWORD")
    config = project.config(
        project.warehouse(name).model_copy(update={"s3": s3, "s3_keys": keys}),
        uri=f"{server.base_url}/catalog".replace("//catalog", "/catalog"),
        auth=TokenAuth(kind="token", token="env:GRANTING_TOKEN"),
    )
    ids: dict[str, str] = {}
    for role in roles:
        response = server.post("/management/v1/role", json={"name": role}, headers={"x-project-id": project.id})
        ids[role] = response.raise_for_status().json()["id"]
    return Side(config, ids)


@pytest.fixture
def sides(
    servers: tuple[httpx.Client, httpx.Client], sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> tuple[Side, Side]:
    """Return two projects. The source has grants of each kind on each level."""
    monkeypatch.setenv("GRANTING_TOKEN", "operator")
    monkeypatch.setenv("STORE_USER", sandbox.admin.access_key_id)
    monkeypatch.setenv("STORE_PASSWORD", sandbox.admin.secret_access_key.get_secret_value())
    source = create_side(servers[0], sandbox, "old", ["analysts", "auditors"])
    target = create_side(servers[1], sandbox, NEW, ["Analysts"])
    fill_sides(source, target)
    source.grant(ORDERS, "describe", user="oidc~eve")
    return source, target


@pytest.fixture
def catalogs(sides: tuple[Side, Side], sandbox: Sandbox, tmp_path: Path) -> Catalogs:
    source, target = sides
    return Catalogs(source.config, target.config, tmp_path / "migration.db", sandbox, "old")


def test_plan_lists_grants(catalogs: Catalogs) -> None:
    plan = catalogs.migrate(Action.PLAN, grants=True, copy=True).plan
    assert [text for text in plan.grants if "operator" not in text] == [
        "namespace sales: select of user oidc~ann",
        "table sales.orders: modify of role analysts",
        "warehouse: describe of role analysts",
    ]
    target = f"warehouse {NEW} of {catalogs.target.uri}"
    assert f"table sales.orders: select of role auditors: {target} has no such role" in plan.losses
    assert f"table sales.orders: describe of user oidc~eve: {target} has no such user" in plan.losses
    plan = catalogs.migrate(Action.PLAN, "sales.*", grants=True, copy=True).plan
    assert {text.partition(" ")[0] for text in plan.grants} == {"table"}
    assert "grants on namespaces and on the warehouse are not migrated with --table" in plan.losses
    plan = catalogs.migrate(Action.PLAN, copy=True).plan
    assert not plan.grants
    assert any("add --grants" in loss for loss in plan.losses)


def test_grants_follow_the_tables(catalogs: Catalogs, sides: tuple[Side, Side]) -> None:
    _, target = sides
    catalogs.migrate(copy=True, grants=True)
    assert target.list_grants(ORDERS) == set()
    catalogs.migrate(Action.CUT_OVER, grants=True)
    catalogs.migrate(Action.CUT_OVER, grants=True)
    assert target.list_grants(ORDERS) == {("modify", "analysts")}
    assert target.list_grants(SALES) == {("select", "oidc~ann"), TARGET_GRANT}
    assert target.list_grants(WAREHOUSE) == {("describe", "analysts")}
    catalogs.migrate(Action.FINISH)
    assert target.list_grants(ORDERS) == {("modify", "analysts")}


def test_undo_removes_the_added_grants_alone(catalogs: Catalogs, sides: tuple[Side, Side]) -> None:
    source, target = sides
    catalogs.migrate(copy=True)
    catalogs.migrate(Action.CUT_OVER, grants=True)
    catalogs.migrate(Action.UNDO)
    assert target.list_grants(SALES) == {TARGET_GRANT}
    assert target.list_grants(WAREHOUSE) == set()
    assert source.list_grants(ORDERS) == {
        ("modify", "analysts"),
        ("select", "auditors"),
        ("describe", "oidc~eve"),
    }
    catalogs.migrate(copy=True)
    assert target.list_grants(ORDERS) == set()


@pytest.mark.long
def test_grants_on_a_namespace_alone(catalogs: Catalogs, sides: tuple[Side, Side], tmp_path: Path) -> None:
    source, target = (side.grants.endpoint for side in sides)
    entries = catalogs.migrate(copy=True).entries
    plan = grants.plan_grants(source, target, entries, is_whole=True)
    other: ObjectKey = ("namespace", ("other",))
    plan = replace(plan, grants={other: plan.grants[SALES], SALES: plan.grants[SALES]})
    with (
        open_ledger(tmp_path / "other.db", "grants") as ledger,
        pytest.raises(MigrationError, match=r"expected namespace other in .*, found none"),
    ):
        grants.carry_grants(plan, target, ledger)
    assert sides[1].list_grants(SALES) == {("select", "oidc~ann"), TARGET_GRANT}


@pytest.mark.long
def test_grants_that_would_apply_to_other_tables(catalogs: Catalogs, sides: tuple[Side, Side]) -> None:
    catalogs.open_target().create_namespace("ops")
    catalogs.open_target().create_table("ops.runs", build_rows(1).schema)
    plan = catalogs.migrate(Action.PLAN, grants=True, copy=True).plan
    assert {text.partition(" ")[0] for text in plan.grants} == {"table", "namespace"}
    assert (
        f"warehouse: describe of role analysts: it would apply to ops.runs of {sides[1].grants.endpoint}, which is not "
        "migrated"
    ) in plan.losses


@pytest.mark.long
def test_no_table_moves_if_grants_cannot_be_read(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs.migrate(copy=True)
    with monkeypatch.context() as refused:
        refused.setattr(GrantCatalog, "read", _refuse)
        with pytest.raises(AccessDeniedError):
            catalogs.migrate(Action.CUT_OVER, grants=True)
    assert catalogs.open_source().table_exists("sales.orders")


def test_refused_grants_are_an_error_of_the_result(catalogs: Catalogs, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs.migrate(copy=True)
    monkeypatch.setattr(GrantCatalog, "change", _refuse)
    result = migrate_tables(catalogs.route, catalogs.ledger, Action.CUT_OVER, grants=True)
    assert [entry.step for entry in result.entries] == [Step.CUT_OVER]
    assert str(result.error) == "not allowed"


def _refuse(*_: object, **__: object) -> None:
    raise AccessDeniedError("not allowed")


def test_killed_before_the_grants_are_added(
    catalogs: Catalogs, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger has the grants before the target has them: the next run adds them, and an undo removes them."""
    _, target = sides
    catalogs.migrate(copy=True)
    with monkeypatch.context() as killed:
        killed.setattr(GrantCatalog, "change", _end_process)
        with pytest.raises(KeyboardInterrupt):
            catalogs.migrate(Action.CUT_OVER, grants=True)
    catalogs.migrate(Action.CUT_OVER, grants=True)
    assert target.list_grants(WAREHOUSE) == {("describe", "analysts")}
    with monkeypatch.context() as killed:
        killed.setattr(GrantCatalog, "change", _end_process)
        with pytest.raises(KeyboardInterrupt):
            catalogs.migrate(Action.UNDO)
    catalogs.migrate(Action.UNDO)
    assert target.list_grants(WAREHOUSE) == set()


def _end_process(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_identity_may_not_read_grants(
    catalogs: Catalogs, sides: tuple[Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, _ = sides
    source.grant(WAREHOUSE, "modify", user="oidc~carl")
    monkeypatch.setenv("GRANTING_TOKEN", "carl")
    with pytest.raises(AccessDeniedError, match="expected the privilege manage_grants or ownership on the warehouse"):
        grants.plan_grants(source.grants.endpoint, source.grants.endpoint, [], is_whole=True)


def test_catalog_without_grants(project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogs = build_catalogs(project, tmp_path, monkeypatch)
    catalogs.add_table("sales.orders")
    plan = catalogs.migrate(Action.PLAN, grants=True).plan
    assert f"grants are not migrated: warehouse {OLD} of {catalogs.source.uri} is no Lakekeeper" in str(plan.losses)
