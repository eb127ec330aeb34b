"""A tenant whose spec extends files of defaults/, on both engines."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.integration.tenant.conftest import Tenant


def extend(tenant: Tenant) -> None:
    """Move the storage, the environment and a label of a tenant into a file that its spec extends."""
    shared = {key: tenant.spec.pop(key) for key in ("version", "storage", "environment")} | {"labels": {"tier": "gold"}}
    (tenant.folder / "defaults").mkdir()
    (tenant.folder / "defaults" / "base.yaml").write_text(yaml.safe_dump(shared, sort_keys=True))
    tenant.spec |= {"extends": ["base"], "labels": {"team": "data"}}
    tenant.write()


def test_extended_tenant_is_the_same_tenant(make_tenant: Any) -> None:
    tenant = make_tenant(labels={"tier": "gold", "team": "data"})
    tenant.up()

    extend(tenant)

    assert tenant.verb("preview", "--refresh", "--expect-no-changes")["changes"].keys() == {"same"}
    values = {value["path"]: value for value in json.loads(tenant.output("spec", "explain", "--json"))["values"]}
    places = {path: (values[path]["source"], values[path]["place"]) for path in ("labels.tier", "labels.team", "owner")}
    assert places == {
        "labels.tier": ("shared values", "defaults/base.yaml:3"),
        "labels.team": ("spec", ""),
        "owner": ("spec", ""),
    }
    assert values["storage.main.bucket"]["place"] == "defaults/base.yaml:7"
    tenant.spec["extends"] = ["bass"]
    tenant.write()
    for command in (("preview", "--engine", "embedded"), ("spec", "explain")):
        assert "was `base` meant?" in tenant.error(*command) or "base" in tenant.error(*command)


def test_plan_is_refused_after_shared_values_changed(make_tenant: Any) -> None:
    tenant = make_tenant(labels={"tier": "gold", "team": "data"})
    extend(tenant)
    plan = str(tenant.folder / "plan.json")
    tenant.verb("preview", "--save-plan", plan)
    shared = tenant.folder / "defaults" / "base.yaml"
    shared.write_text(shared.read_text().replace("gold", "silver"))

    refused = tenant.error("up", "--plan", plan)

    assert "defaults/" in refused
    assert "Nothing was changed" in refused
    shared.write_text(shared.read_text().replace("silver", "gold"))
    tenant.verb("up", "--plan", plan)


@pytest.mark.pulumi_cli
@pytest.mark.timeout(600)
def test_extended_tenant_with_ends_on_the_cli(make_tenant: Any, attached_providers: dict[str, str]) -> None:
    share = {"principal_arn": "arn:aws:iam::210987654321:root", "until": "9000-01-01"}
    tenant = make_tenant(warehouses=[{"name": "executions", "deletion": "purge", "shares": {"audit": share}}])
    tenant.environ = attached_providers
    extend(tenant)

    tenant.output("up", "--yes", "--engine", "pulumi")

    tenant.output("preview", "--refresh", "--expect-no-changes", "--engine", "pulumi")
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    share["until"] = "2001-01-01"
    tenant.write()
    assert tenant.up()["changes"]["delete"] > 0
    tenant.output("preview", "--refresh", "--expect-no-changes", "--engine", "pulumi")
