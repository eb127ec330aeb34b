"""Mistakes in storages of backend `existing`, each with its path, before anything is made."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.spec import SpecError, parse_spec
from lakewright.storage.existing import ExistingStorage

OWN: dict[str, Any] = {
    "backend": "existing",
    "bucket": "acme-own",
    "region": "eu-west-1",
    "role_arn": "arn:aws:iam::123456789012:role/lakewright/acme",
}


def document(storage: dict[str, Any], warehouse: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    return {
        "version": 1,
        "environment": "here",
        "name": "acme",
        "owner": "data@acme.example",
        "storage": {"own": OWN | storage},
        "warehouses": [{"name": "executions", **(warehouse or {})}],
    } | changes


def mistakes(spec: dict[str, Any]) -> dict[str, str]:
    with pytest.raises(SpecError) as caught:
        parse_spec(spec, "the test's spec")
    return {problem.path: problem.expected for problem in caught.value.problems}


@pytest.mark.parametrize(
    ("storage", "path", "message"),
    [
        ({"role_arn": None}, "storage.own.role_arn", "`lakewright byo reserve` prints its policies"),
        ({"role_arn": "acme"}, "storage.own.role_arn", "a role's ARN looks like"),
        ({"role_arn": "arn:aws:iam::123456789012:user/acme"}, "storage.own.role_arn", "a role's ARN looks like"),
        ({"external_id": "x"}, "storage.own.external_id", "an external id has 2 to 1224"),
        ({"external_id": "with space"}, "storage.own.external_id", "an external id has 2 to 1224"),
        ({"bucket": None}, "storage.own.bucket", "string"),
        ({"bucket": "UPPER"}, "storage.own.bucket", "bucket"),
        ({"may_delete": "perhaps"}, "storage.own.may_delete", "boolean"),
    ],
)
def test_mistake_in_a_storage(storage: dict[str, Any], path: str, message: str) -> None:
    problems = mistakes(document(storage))

    assert list(problems) == [path]
    assert message in problems[path]


def test_missing_role_does_not_hide_other_mistakes() -> None:
    spec = document({"external_id": "x"})
    del spec["storage"]["own"]["role_arn"]

    assert set(mistakes(spec)) == {"storage.own.role_arn", "storage.own.external_id"}


def test_purge_needs_a_bucket_with_deletion() -> None:
    problems = mistakes(document({"may_delete": False}, {"deletion": "purge"}))

    assert list(problems) == ["warehouses.0.deletion"]
    assert "`may_delete: false`, so nothing can be purged" in problems["warehouses.0.deletion"]


def test_server_jobs_need_a_bucket_with_deletion() -> None:
    maintenance = {"schedule": "0 3 * * *", "server": {"executions": {"expire_snapshots": True}}}

    problems = mistakes(document({"may_delete": False}, maintenance=maintenance))

    assert "expected no jobs of the server" in problems["maintenance.server.executions"]


@pytest.mark.parametrize(("may_delete", "option"), [(False, "false"), (True, None)])
def test_clients_delete_nothing_without_permission(*, may_delete: bool, option: str | None) -> None:
    storage = ExistingStorage.model_validate(OWN | {"may_delete": may_delete})

    options = storage.client_options(storage.address(_Defaults()))

    assert options.get("s3.delete-enabled") == option


class _Defaults:
    region = "eu-west-1"
    s3_endpoint = None
