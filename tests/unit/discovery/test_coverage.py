"""Coverage of the objects on servers by stacks, without a server."""

from __future__ import annotations

from typing import Any

from lakewright.discovery.listing.managed_objects import collect_managed_objects
from lakewright.discovery.listing.project_objects import FoundGrant, FoundNamespace, FoundWarehouse, ProjectObjects
from lakewright.discovery.survey.coverage import (
    Coverage,
    KindCoverage,
    SurveyedObject,
    format_coverage,
    list_project_objects,
    measure_coverage,
)
from lakewright.lakekeeper.api.catalog.namespaces import ListedNamespace
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.privileges import GrantEntry, Object
from lakewright.lakekeeper.api.connection.versions import parse_server
from lakewright_engine.model.resources import ResourceState

SERVER = parse_server("http://lakekeeper", {"version": "0.13.3", "authz-backend": "openfga"})
ENDPOINT = {"server": {"endpoint": "http://lakekeeper/"}}
ROLE = "01983a4e-0000-7000-8000-000000000001"


def resource(kind: str, object_id: str, **inputs: Any) -> ResourceState:
    properties: dict[str, Any] = {**ENDPOINT, **inputs}
    type_ = kind if ":" in kind else f"pulumi-python:dynamic/lakekeeper:{kind}"
    return ResourceState("urn", type_, custom=True, id=object_id, inputs=properties)


def project_with_everything() -> ProjectObjects:
    on = Object("warehouse", project_id="acme", warehouse_id="w1")
    within = Object("namespace", "n1", project_id="acme", warehouse_id="w1")
    namespaces = tuple(
        FoundNamespace(ListedNamespace(path, "n1", protected=False)) for path in (("Sales",), ("Sales", "daily"))
    )
    return ProjectObjects(
        "acme",
        "acme",
        SERVER,
        (
            FoundWarehouse(
                {"warehouse-id": "w1", "name": "main"},
                namespaces,
                (Tabular(("Sales",), "orders"), Tabular(("Sales",), "old", dropped=True)),
            ),
        ),
        roles={ROLE: {"name": "analysts"}},
        grants=(
            FoundGrant(on, GrantEntry("select", "role", ROLE), "main"),
            FoundGrant(on, GrantEntry("ownership", "user", "oidc~me"), "main"),
            FoundGrant(within, GrantEntry("ownership", "user", "oidc~job"), "main", ("Sales",)),
        ),
        identity="oidc~me",
    )


MANAGED = [
    resource("Project", "acme", project_id="acme"),
    resource("Warehouse", "w1"),
    resource("Namespace", "w1/sales", warehouse_id="w1", name="sales"),
    resource("Role", ROLE, name="analysts"),
    resource("Grant", "g", on={"type": "warehouse", "warehouse_id": "w1"}, privilege="select", role=ROLE),
]


def test_share_of_managed_objects_by_kind() -> None:
    coverage = measure_coverage(list_project_objects(project_with_everything()), collect_managed_objects(MANAGED))

    assert {kind: (counts.managed, counts.total) for kind, counts in coverage.kinds.items()} == {
        "project": (1, 1),
        "warehouse": (1, 1),
        "namespace": (1, 2),
        "table": (0, 1),
        "role": (1, 1),
        "grant": (1, 1),
    }
    assert [(entry.kind, entry.name) for entry in coverage.unmanaged] == [
        ("namespace", "acme/main.Sales.daily"),
        ("table", "acme/main.Sales.orders"),
    ]
    assert coverage.to_json()["coverage"]["total"] == {"managed": 5, "all": 7, "percentage": 71.4}


def test_coverage_is_never_rounded_up_to_everything() -> None:
    assert KindCoverage(1999, 2000).percentage == 99.9
    assert KindCoverage(0, 0).percentage is None


def test_grants_on_the_project_are_found() -> None:
    on = Object("project", project_id="acme")
    objects = ProjectObjects("acme", "acme", SERVER, grants=(FoundGrant(on, GrantEntry("select", "user", "oidc~a")),))
    grant = resource("Grant", "g", on={"type": "project", "project_id": "acme"}, privilege="select", user="oidc~a")

    counts = measure_coverage(list_project_objects(objects), collect_managed_objects([grant])).kinds["grant"]

    assert (counts.managed, counts.total) == (1, 1)


def test_buckets_roles_and_namespaces_of_the_cloud_count() -> None:
    objects = [
        SurveyedObject("bucket", "AWS", "lake", ("lake",)),
        SurveyedObject("aws role", "AWS", "lakewright.acme.main", ("lakewright.acme.main",)),
        SurveyedObject("kubernetes namespace", "cluster", "tenant-acme", ("tenant-acme",)),
    ]
    states = [
        resource("aws:s3/bucket:Bucket", "lake", bucket="lake"),
        resource("aws:iam/role:Role", "x", name="lakewright.acme.main"),
        resource("kubernetes:core/v1:Namespace", "tenant-acme", metadata={"name": "tenant-acme"}),
    ]

    assert measure_coverage(objects, collect_managed_objects(states)).total == KindCoverage(3, 3)
    assert measure_coverage(objects, collect_managed_objects([])).total == KindCoverage(0, 3)


def test_problems_make_the_exit_code_1() -> None:
    assert Coverage().exit_code == 0
    assert Coverage(problems=("http://lakekeeper could not be listed",)).exit_code == 1


def test_text_lists_what_no_stack_has() -> None:
    text = format_coverage(
        measure_coverage(list_project_objects(project_with_everything()), collect_managed_objects(MANAGED))
    )

    assert "http://lakekeeper: table acme/main.Sales.orders" in text
    assert text.splitlines()[-1].split() == ["total", "5", "7", "71.4", "%"]
