"""Objects of two stacks with equal names, in two accounts and in two clusters."""

from __future__ import annotations

from typing import Any

import pytest
from lakewright.discovery.unmanaged import cluster_objects, role_policies
from lakewright.drift.detection.steps import DriftOptions, DriftRun
from lakewright.drift.model import Difference
from lakewright.drift.objects.kubernetes.cluster import Collection
from lakewright.drift.session import ScanSession, StackResource
from lakewright.fleet.selection import SelectedStack
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.project.project import PulumiProject

ROLE = "lakewright.acme.executions"
STACKS = ("dev", "prod")


def create_resource(stack: str, type_: str, id_: str, provider: dict[str, Any] | None, **inputs: Any) -> StackResource:
    state = ResourceState(f"urn:pulumi:{stack}::p::{type_}::{id_}", type_, custom=True, id=id_, inputs=inputs)
    package = type_.partition(":")[0]
    provider_type = f"pulumi:providers:{package}"
    urn = f"urn:pulumi:{stack}::p::{provider_type}::{package}"
    provider_state = None if provider is None else ResourceState(urn, provider_type, custom=True, inputs=provider)
    return StackResource(stack, "acme", stack, state, provider_state)


@pytest.fixture
def run(tmp_path: Any) -> DriftRun:
    (tmp_path / "Pulumi.yaml").write_text("name: p\nruntime: python\n")
    stacks = [SelectedStack(name, {"name": "acme"}) for name in STACKS]
    return DriftRun(ScanSession(PulumiProject.load(tmp_path)), stacks, DriftOptions())


class Account:
    """An account whose role has one policy."""

    def list_role_details(self) -> list[dict[str, Any]]:
        return [{"RoleName": ROLE, "RolePolicyList": [{"PolicyName": "extra"}], "AttachedManagedPolicies": []}]


@pytest.mark.parametrize(("is_provider_missing", "unmanaged"), [(False, ["dev"]), (True, [])])
def test_policy_of_a_stack_in_another_account(
    run: DriftRun, monkeypatch: pytest.MonkeyPatch, unmanaged: list[str], *, is_provider_missing: bool
) -> None:
    """A policy whose provider is missing may be in any account."""
    monkeypatch.setattr(role_policies, "open_account", lambda _settings, _session: Account())
    keys: dict[str, dict[str, Any]] = {stack: {"accessKey": stack, "secretKey": "s"} for stack in STACKS}
    provider = None if is_provider_missing else keys["prod"]
    run.resources += [
        *(create_resource(stack, "aws:iam/role:Role", ROLE, keys[stack]) for stack in STACKS),
        create_resource("prod", "aws:iam/rolePolicy:RolePolicy", "p", provider, role=ROLE, name="extra"),
    ]

    findings = [*role_policies.find_unmanaged_policies(run)]

    assert [finding.stack for finding in findings if isinstance(finding, Difference)] == unmanaged


class Cluster:
    """A cluster with one Pod in the tenant's namespace."""

    def collection(self, _version: str, kind: str) -> Any:
        return kind if kind == "Pod" else None

    def objects(self, _collection: Collection, namespace: str = "") -> list[dict[str, Any]]:
        return [{"metadata": {"namespace": namespace, "name": "stray", "uid": "1"}}]


def test_object_of_another_provider_of_the_cluster(run: DriftRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kubeconfig has another path, and the state has the uid of the object."""
    monkeypatch.setattr(cluster_objects, "open_cluster", lambda *_settings: Cluster())
    pod = create_resource("dev", "kubernetes:core/v1:Pod", "tenant-acme/stray", {"kubeconfig": "/other"})
    pod.state.outputs = {"metadata": {"uid": "1"}}
    run.resources += [create_resource("dev", "kubernetes:core/v1:Namespace", "tenant-acme", {}), pod]

    assert [*cluster_objects.find_unmanaged_objects(run)] == []


def test_cluster_of_a_provider_without_settings(run: DriftRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its provider uses the kubeconfig of the environment."""
    monkeypatch.setattr(cluster_objects, "open_cluster", lambda *_settings: Cluster())
    run.resources.append(create_resource("dev", "kubernetes:core/v1:Namespace", "tenant-acme", {}))

    [finding] = cluster_objects.find_unmanaged_objects(run)

    assert isinstance(finding, Difference)
    assert finding.resource == "tenant-acme/stray"


@pytest.mark.parametrize(("is_provider_missing", "unmanaged"), [(False, ["dev"]), (True, [])])
def test_object_of_a_stack_in_another_cluster(
    run: DriftRun, monkeypatch: pytest.MonkeyPatch, unmanaged: list[str], *, is_provider_missing: bool
) -> None:
    """An object whose provider is missing may be in any cluster."""
    monkeypatch.setattr(cluster_objects, "open_cluster", lambda *_settings: Cluster())
    provider = None if is_provider_missing else {"context": "prod"}
    namespace, pod = "kubernetes:core/v1:Namespace", "kubernetes:core/v1:Pod"
    run.resources += [
        *(create_resource(stack, namespace, "tenant-acme", {"context": stack}) for stack in STACKS),
        create_resource("prod", pod, "tenant-acme/stray", provider),
    ]

    findings = [*cluster_objects.find_unmanaged_objects(run)]

    assert [finding.stack for finding in findings if isinstance(finding, Difference)] == unmanaged
