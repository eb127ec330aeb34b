"""The namespace of a tenant's computing units in a state, and the limit of compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from lakewright.drift.objects.kubernetes.cluster import ClusterUnreachableError
from lakewright.drift.session import ScanSession
from lakewright.fleet.states import StackState
from lakewright.limits.compute_enforcement import UnitNamespace, find_namespace
from lakewright.limits.limited_parts import MeasuredLimit, find_full_parts
from lakewright_engine.model.resources import ResourceState
from lakewright_engine.project.project import PulumiProject

PROVIDER = "urn:pulumi:dev::lakewright::pulumi:providers:kubernetes::cluster"
UNITS = "computing units"


def make_namespace(provider_inputs: dict[str, Any] | None) -> UnitNamespace:
    """Return the namespace of a state whose provider has these inputs, or of a state without the provider."""
    metadata = {"name": "tenant-acme", "annotations": {"lakewright/compute-limit": "enforced"}}
    namespace = ResourceState(
        urn="urn:pulumi:dev::lakewright::kubernetes:core/v1:Namespace::units",
        type="kubernetes:core/v1:Namespace",
        custom=True,
        inputs={"metadata": metadata},
        provider=f"{PROVIDER}::1",
    )
    resources = [namespace]
    if provider_inputs is not None:
        provider_type = "pulumi:providers:kubernetes"
        resources.append(ResourceState(PROVIDER, provider_type, custom=True, id="1", inputs=provider_inputs))
    unit_namespace = find_namespace(StackState("dev", resources))
    assert unit_namespace is not None
    return unit_namespace


def make_session() -> ScanSession:
    """Return a run that must not reach any server."""
    return ScanSession(cast(PulumiProject, None))


def test_limit_of_rendered_namespace_is_not_enforced(tmp_path: Path) -> None:
    namespace = make_namespace({"renderYamlToDirectory": str(tmp_path)})

    assert not namespace.is_enforceable
    assert "`kubernetes.render_to`" in namespace.describe_gap()
    assert namespace.set_limit(make_session(), is_reached=False) is False
    with pytest.raises(ClusterUnreachableError, match="so its cluster is not known"):
        namespace.connect(make_session())


def test_unreadable_provider_reaches_no_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The current context of the environment is another cluster."""
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "other-cluster"))
    namespace = make_namespace(None)

    assert namespace.is_enforceable
    with pytest.raises(ClusterUnreachableError, match="the provider of namespace tenant-acme cannot be read"):
        namespace.set_limit(make_session(), is_reached=True)


@pytest.mark.parametrize(("used", "full"), [(0, ()), (96, (UNITS,)), (100, (UNITS,))])
def test_hours_end_enforcement_despite_unread_data(used: int, full: tuple[str, ...]) -> None:
    """A new month ends the limit of compute although a warehouse could not be measured."""
    limits = [MeasuredLimit(UNITS, "compute", 100, used), MeasuredLimit("warehouse main", "bytes", 100, 0)]
    enforceable = {UNITS, "warehouse main"}

    parts = find_full_parts(limits, enforceable, enforceable, is_complete=False)

    assert parts == (*full, "warehouse main")


def test_unread_hours_end_no_enforcement() -> None:
    assert find_full_parts([], {UNITS}, {UNITS}, is_complete=True) == (UNITS,)
