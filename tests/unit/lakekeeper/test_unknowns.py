"""Any property may be an output that is not known yet: a preview reports what it can and never fails."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import pytest
from lakewright.lakekeeper.grants.grant import GrantProvider
from lakewright.lakekeeper.grants.grants import GrantsProvider
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.role_members import RoleMembersProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from lakewright.lakekeeper.provider.inputs import UNKNOWN
from lakewright.lakekeeper.provider.run_context import RunContext
from lakewright.lakekeeper.server.bootstrap import BootstrapProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.tenant.deletion_guard import DeletionGuardProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.lakekeeper.warehouse.task_queue_config import TaskQueueConfigProvider

Props = dict[str, Any]
Path = tuple[str | int, ...]

ID = "01a1fcf2-b7e7-781a-879e-a45e6cb252fb"
ROLE_ARN = "arn:aws:iam::123456789012:role/lake"
STORAGE = {
    "bucket": "lake",
    "key_prefix": "main",
    "region": "us-east-1",
    "endpoint": "https://s3.test",
    "flavor": "s3-compat",
    "assume_role_arn": ROLE_ARN,
    "sts_session_tags": {"team": "a"},
    "storage_layout": {"type": "tabular-only", "tabular": "{name}-{uuid}"},
}
DECLARED: list[tuple[type[LakekeeperProvider[Any]], Props]] = [
    (BootstrapProvider, {"accept_terms_of_use": True}),
    (ProjectProvider, {"project_id": "acme", "name": "ACME"}),
    (
        WarehouseProvider,
        {
            "project_id": "acme",
            "name": "main",
            "storage": STORAGE,
            "credential": {"type": "aws-system-identity", "external_id": "x-1"},
            "delete_profile": {"type": "soft", "expiration_seconds": 60},
            "protected": True,
            "active": True,
            "allowed_format_versions": [2, 3],
            "default_format_version": 2,
        },
    ),
    (NamespaceProvider, {"warehouse_id": ID, "name": "sales.daily", "properties": {"owner": "a"}, "protected": True}),
    (
        TableProvider,
        {
            "warehouse_id": ID,
            "namespace": "sales",
            "name": "orders",
            "columns": [{"name": "id", "type": "long", "required": True}, {"name": "day", "type": "date"}],
            "partition_by": ["days(day)"],
            "sort_by": ["id desc"],
            "properties": {"owner": "a"},
        },
    ),
    (UserProvider, {"user_id": "oidc~ann", "name": "Ann", "user_type": "human", "email": "ann@x.example"}),
    (RoleProvider, {"project_id": "acme", "name": "r", "description": "d", "provider_id": "okta", "source_id": "7"}),
    (RoleMembersProvider, {"project_id": "acme", "role_id": ID, "users": ["oidc~ann"]}),
    (
        GrantProvider,
        {
            "on": {"type": "table", "warehouse_id": ID, "namespace": "sales", "name": "orders"},
            "privilege": "select",
            "user": "oidc~ann",
        },
    ),
    (
        GrantsProvider,
        {
            "on": {"type": "namespace", "warehouse_id": ID, "namespace": "sales"},
            "grants": [{"privilege": "x", "role": ID}],
        },
    ),
    (TaskQueueConfigProvider, {"warehouse_id": ID, "queue": "tabular_purge", "config": {"a": 1}}),
    (DeletionGuardProvider, {"warehouses": {"main": ID}}),
]


@pytest.fixture(autouse=True)
def _separate_program() -> None:
    run_context.start(RunContext())


def paths(value: Any, path: Path = ()) -> Iterator[Path]:
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        yield from paths(child, (*path, key))


def replace_by_unknown(props: Props, path: Path) -> Props:
    changed: Any = deepcopy(props)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = UNKNOWN
    return changed


def look_up(props: Any, path: Path) -> Any:
    """Return the value at a path, or at the first part of it that is unknown as a whole."""
    for key in path:
        if props is UNKNOWN:
            break
        props = props[key]
    return props


@pytest.mark.parametrize(("provider", "declaration"), DECLARED, ids=lambda one: getattr(one, "__name__", ""))
def test_preview_with_each_property_unknown(provider: type[LakekeeperProvider[Any]], declaration: Props) -> None:
    hooks = provider()
    props = {"server": {"endpoint": "http://127.0.0.1:9", "auth": {"kind": "none"}}, **declaration}
    checked_declaration = hooks.check({}, props)
    assert not checked_declaration.failures

    def preview(path: Path) -> Path:
        for olds in ({}, checked_declaration.inputs):
            checked = hooks.check(olds, replace_by_unknown(props, path))
            assert not checked.failures, path
            assert look_up(checked.inputs, path) is UNKNOWN, path
        hooks.diff("the-id", checked_declaration.inputs, checked.inputs)
        return path

    # New objects are looked up on the server. It does not respond here, and each call is retried.
    with ThreadPoolExecutor(max_workers=32) as pool:
        previewed = list(pool.map(preview, paths(props)))
    assert previewed == list(paths(props))


def test_unknown_objects_are_not_taken_for_one_object() -> None:
    server = {"endpoint": "http://127.0.0.1:9"}
    for name in ("first", "second"):
        on = {"type": "warehouse", "warehouse_id": UNKNOWN}
        all_grants = {"server": server, "on": on, "grants": [], "declared_as": name}
        assert not GrantsProvider().check({}, all_grants).failures
        members = {"server": server, "project_id": "acme", "role_id": UNKNOWN, "users": [], "declared_as": name}
        assert not RoleMembersProvider().check({}, members).failures
