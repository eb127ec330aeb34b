"""Two stacks with one tenant or one place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lakewright.project_files.servers import Servers, derive_servers, is_same_url
from lakewright.spec import TenantSpec
from lakewright.spec.stack_conflicts import find_stack_conflicts, group_possible_conflicts
from pydantic import ValidationError

ROLE = "arn:aws:iam::123456789012:role/lake"
OWN = {"backend": "existing", "bucket": "lake", "region": "eu-west-1", "role_arn": ROLE}


def tenant(name: str, storage: dict[str, Any] | None = None, **changes: Any) -> TenantSpec:
    spec: dict[str, Any] = {
        "version": 1,
        "environment": "production",
        "name": name,
        "owner": "data@example.org",
        "storage": {"main": storage or {"backend": "aws", "bucket": f"{name}-lakehouse"}},
        "warehouses": [{"name": "executions"}],
    }
    return TenantSpec.model_validate(spec | changes)


ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "production": {"lakekeeper": {"endpoint": "https://lakekeeper.example"}},
    "staging": {"lakekeeper": {"endpoint": "https://staging.example"}},
    "production-eu": {"lakekeeper": {"endpoint": "https://Lakekeeper.example:443/"}, "aws": {"region": "eu-west-1"}},
    "sandbox": {"sandbox": "../.sandbox"},
    "other-sandbox": {"sandbox": "../.other"},
    "cluster-a": {"lakekeeper": {"endpoint": "http://lakekeeper:8181"}, "kubernetes": {"context": "a"}},
    "cluster-a-again": {"lakekeeper": {"endpoint": "http://lakekeeper:8181/"}, "kubernetes": {"context": "a"}},
    "cluster-b": {"lakekeeper": {"endpoint": "http://lakekeeper:8181"}, "kubernetes": {"context": "b"}},
}


def servers(name: str) -> Servers:
    return derive_servers(name, ENVIRONMENTS.get(name, {}), Path("/project/environments"))


def find_conflicts(one: TenantSpec, other: TenantSpec) -> dict[str, str]:
    return dict(find_stack_conflicts(one, {"other.yaml": other}, servers))


def test_one_tenant_in_two_stacks() -> None:
    message = find_conflicts(tenant("acme"), tenant("acme", {"backend": "aws", "bucket": "another"}))["name"]
    assert message == "expected a tenant that no other stack declares; other.yaml declares tenant `acme` too"


def test_one_project_of_two_tenants() -> None:
    other = tenant("beta", project={"id": "acme"})
    assert find_conflicts(tenant("acme"), other) == {
        "project.id": "expected a project that no other stack declares; other.yaml declares project `acme` too"
    }


SHARED = {"shared": True}


def test_tenants_may_share_a_project() -> None:
    other = tenant("beta", project=SHARED, warehouses=[{"name": "beta-results"}])
    assert tenant("acme", project=SHARED).project_id == "00000000-0000-0000-0000-000000000000"
    assert not find_conflicts(tenant("acme", project=SHARED), other)


def test_warehouses_of_a_shared_project_have_different_names() -> None:
    other = tenant("beta", project=SHARED, warehouses=[{"name": "Executions"}])
    (problem,) = find_conflicts(tenant("acme", project=SHARED), other).items()
    assert problem[0] == "warehouses.0.name"
    assert "other.yaml declares warehouse `executions` too" in problem[1]


def test_a_project_is_shared_by_both_tenants_or_by_none() -> None:
    other = tenant("beta", project={"id": "acme", "shared": True}, warehouses=[{"name": "beta-results"}])
    assert "declares project `acme` too" in find_conflicts(tenant("acme"), other)["project.id"]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"project": {"shared": True, "name": "Lake"}}, "the stack does not rename a shared project"),
        (
            {
                "project": SHARED,
                "grants": [{"to": "role:a", "privilege": "data_admin", "on": {"project": True}}],
            },
            "the project is shared, and a stack does not change it",
        ),
    ],
    ids=["name", "grant"],
)
def test_a_shared_project_is_not_changed(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        tenant("acme", **changes)


def acme(environment: str, bucket: str = "") -> TenantSpec:
    return tenant("acme", {"backend": "aws", "bucket": bucket or f"acme-{environment}"}, environment=environment)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("production", "staging"),
        ("production", "sandbox"),
        ("sandbox", "other-sandbox"),
        ("cluster-a", "cluster-b"),
        ("production", "unreadable"),
    ],
)
def test_one_tenant_in_two_environments_is_allowed(one: str, other: str) -> None:
    """The environments have different servers."""
    assert not find_conflicts(acme(one), acme(other))


@pytest.mark.parametrize(
    ("one", "other", "server"),
    [
        ("production", "production-eu", "https://lakekeeper.example"),
        ("cluster-a", "cluster-a-again", "http://lakekeeper:8181"),
    ],
)
def test_one_tenant_in_environments_with_one_server(one: str, other: str, server: str) -> None:
    message = find_conflicts(acme(one), acme(other))["name"]
    assert "other.yaml declares tenant `acme` too" in message
    assert message.endswith(f"its environment `{other}` has the same Lakekeeper, {server}")


def test_one_aws_bucket_in_two_environments() -> None:
    """A bucket's name is unique in all of AWS, whichever server has the catalog."""
    shared = "acme-lakehouse"
    assert (
        "s3://acme-lakehouse too"
        in find_conflicts(acme("production", shared), acme("staging", shared))["storage.main.bucket"]
    )
    assert not find_conflicts(acme("production", shared), acme("sandbox", shared)), "a sandbox is no AWS"


def store(endpoint: str) -> dict[str, Any]:
    credential = {"access_key_id": "env:ID", "secret_access_key": "env:SECRET"}
    return {"backend": "s3", "bucket": "lake", "endpoint": endpoint, "credential": credential}


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        (("production", "https://minio.example"), ("staging", "https://MINIO.example:443/"), True),
        (("production", "https://minio.example"), ("staging", "https://minio2.example"), False),
        (("cluster-a", "http://minio.store.svc:9000"), ("cluster-b", "http://minio.store.svc:9000"), False),
        (("cluster-a", "http://minio.store.svc:9000"), ("cluster-a-again", "http://minio.store.svc:9000"), True),
    ],
)
def test_one_store_from_two_environments(one: tuple[str, str], other: tuple[str, str], *, is_shared: bool) -> None:
    prefix = [{"name": "executions", "key_prefix": "shared"}]
    first = tenant("acme", store(one[1]), environment=one[0], warehouses=prefix)
    right = tenant("globex", store(other[1]), environment=other[0], warehouses=prefix)
    assert ("warehouses.0.key_prefix" in find_conflicts(first, right)) is is_shared


def test_aws_under_its_own_host_name_is_aws() -> None:
    acme = tenant("globex", OWN, warehouses=[{"name": "executions", "key_prefix": "shared"}])
    storage = store("https://s3.eu-west-1.amazonaws.com")
    other = tenant("acme", storage, warehouses=[{"name": "executions", "key_prefix": "shared"}])
    assert "warehouses.0.key_prefix" in find_conflicts(acme, other)


def test_spellings_of_one_url() -> None:
    assert is_same_url("https://Lakekeeper.example:443/", "https://lakekeeper.example")
    assert is_same_url("https://lakekeeper.example.", "https://lakekeeper.example")
    assert is_same_url("https://lakekeeper.example.:8443/a", "https://lakekeeper.example:8443/a/")
    assert not is_same_url("https://lakekeeper.example/a", "https://lakekeeper.example/b")


def test_different_tenants_and_places_are_allowed() -> None:
    assert not find_conflicts(tenant("acme"), tenant("globex"))
    assert not find_conflicts(tenant("acme", OWN), tenant("globex", OWN)), "each has a prefix of its own"


def test_one_bucket_that_two_stacks_make() -> None:
    shared = {"backend": "aws", "bucket": "lake"}
    assert (
        "other.yaml declares s3://lake too"
        in find_conflicts(tenant("acme", shared), tenant("globex", shared))["storage.main.bucket"]
    )


@pytest.mark.parametrize("prefix", ["shared", "shared/inner"])
def test_overlapping_prefixes(prefix: str) -> None:
    one = tenant("acme", OWN, warehouses=[{"name": "executions", "key_prefix": "shared"}])
    other = tenant("globex", OWN, warehouses=[{"name": "executions", "key_prefix": prefix}])
    for first, right in ((one, other), (other, one)):
        assert "expected a place that no other stack uses" in find_conflicts(first, right)["warehouses.0.key_prefix"]


def test_prefix_beside_another_is_no_overlap() -> None:
    one = tenant("acme", OWN, warehouses=[{"name": "executions", "key_prefix": "shared"}])
    other = tenant("globex", OWN, warehouses=[{"name": "executions", "key_prefix": "shared-2"}])
    assert not find_conflicts(one, other)


def test_prefix_in_a_bucket_that_another_stack_makes() -> None:
    maker = tenant("globex", {"backend": "aws", "bucket": "lake"})
    assert "s3://lake too" in find_conflicts(tenant("acme", OWN), maker)["warehouses.0.key_prefix"]


def test_one_client_in_two_stacks() -> None:
    identity = {"client_id": "jobs", "subject": "5f0c"}
    ours, theirs = tenant("acme", identity=identity), tenant("other", identity=identity)

    assert list(find_conflicts(ours, theirs)) == ["identity.subject"]
    assert find_conflicts(ours, tenant("other", identity=identity, environment="staging")) == {}
    assert find_conflicts(ours, tenant("other", identity=identity | {"subject": "6a1d"})) == {}


def test_only_possible_conflicts_are_compared() -> None:
    """Specs of one bucket, name or project are compared; all others are not."""
    buckets = {"a": "lake", "b": "lake", "c": "other"}
    specs = {f"{name}.yaml": tenant(name, OWN | {"bucket": bucket}) for name, bucket in buckets.items()}
    specs["copy.yaml"] = tenant("c", OWN | {"bucket": "third"})

    groups = {name: sorted(neighbors) for name, neighbors in group_possible_conflicts(specs).items()}

    assert groups == {"a.yaml": ["b.yaml"], "b.yaml": ["a.yaml"], "c.yaml": ["copy.yaml"], "copy.yaml": ["c.yaml"]}


@pytest.mark.parametrize(("theirs", "is_refused"), [("sales", True), ("orders", False)])
def test_roles_of_a_shared_project_have_different_names(theirs: str, *, is_refused: bool) -> None:
    """The name of the tenant and that of the role are joined by a hyphen, which both may contain."""
    acme = tenant("acme", project=SHARED, warehouses=[{"name": "EU-sales"}])
    other = tenant("acme-eu", project=SHARED, warehouses=[{"name": theirs}])

    message = find_conflicts(acme, other).get("name", "")

    assert ("declares role `acme-EU-sales-owner`, too" in message) is is_refused
