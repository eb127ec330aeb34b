"""The fleet's commands on real tenants of a sandbox."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
from calendar import monthrange
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
import yaml
from lakewright.cli.commands.fleet.wave_checks import find_faults
from lakewright.costs.charges import to_decimal
from lakewright.fleet.selection import Selection, select
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from lakewright_spark.scheduler.usage_recording import record_usage

from tests.command_server import run_command
from tests.integration.fleet.conftest import statuses
from tests.tenant_project import PASSPHRASE, create_project, new_name, tenant_spec

pytestmark = pytest.mark.xdist_group("fleet")


Call = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def project(tmp_path: Path, sandbox: Sandbox) -> Path:
    folder = tmp_path / "project"
    create_project(folder, {"sandbox": str(sandbox.dir), "kubernetes": {"render_to": str(folder / "rendered")}})
    return folder


@pytest.fixture
def names(project: Path) -> list[str]:
    """Write the specs of two tenants with a table; return their names."""
    names = sorted([new_name(), new_name()])
    for name in names:
        spec = tenant_spec(name, {"backend": "aws", "bucket": f"{name}-lakehouse"})
        spec["tables"] = [{"name": "executions.results.orders", "columns": [{"name": "id", "type": "long"}]}]
        write_spec(project, spec)
    return names


def write_spec(project: Path, spec: dict[str, Any]) -> None:
    """Write a tenant's spec; keep the salt of its stack."""
    file = project / "tenants" / f"Pulumi.{spec['name']}.yaml"
    document = yaml.safe_load(file.read_text()) if file.exists() else {}
    file.write_text(yaml.safe_dump({**document, "config": {"lakewright:tenant": spec}}))


def read_spec(project: Path, name: str) -> dict[str, Any]:
    return yaml.safe_load((project / "tenants" / f"Pulumi.{name}.yaml").read_text())["config"]["lakewright:tenant"]


@pytest.fixture
def call(project: Path) -> Call:
    environ = {
        **os.environ,
        "PULUMI_BACKEND_URL": (project / "state").as_uri(),
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "LAKEWRIGHT_WARM": "0",
    }
    return lambda *arguments: run_command(arguments, project, environ)


@pytest.mark.stand_in("surveys all objects of a server")
def test_tenants_are_deployed_listed_and_measured(names: list[str], call: Call) -> None:
    assert call("stack", "init", names[0]).returncode == 0
    updated = call("fleet", "up", "--yes", "--stack", names[0], "--engine", "embedded", "--json")
    resent = call("fleet", "up", "--yes", "--stack", names[0], "--resend-credentials", "--engine", "embedded", "--json")
    report = json.loads(call("fleet", "list", "--json").stdout)
    unmanaged = json.loads(call("fleet", "list", "--unmanaged", "--json").stdout)
    used = call("fleet", "usage", "--json")

    assert statuses(json.loads(updated.stdout)) == {names[0]: "changed"}, updated.stdout + updated.stderr
    assert statuses(json.loads(resent.stdout)) == {names[0]: "changed"}, resent.stdout + resent.stderr
    states = {entry["stack"]: (entry["has_state"], entry["last_result"]) for entry in report["stacks"]}
    assert states == {names[0]: (True, "succeeded"), names[1]: (False, "")}
    assert unmanaged["coverage"]["kinds"]["warehouse"]["managed"] == 1
    usage = json.loads(used.stdout)
    assert used.returncode == 0, used.stdout + used.stderr
    assert usage["stacks"][0]["usage"]["total"]["tables"] == 1
    assert [(entry["deployed"], entry["problem"]) for entry in usage["stacks"]] == [(True, ""), (False, "")]
    assert [owner["owner"] for owner in usage["owners"]] == [names[0]]


@pytest.mark.long
@pytest.mark.stand_in("surveys all objects of a server")
def test_costs_of_a_tenant_over_three_months(names: list[str], call: Call, project: Path, sandbox: Sandbox) -> None:
    """Rows, FOCUS and forecasts are exact; a warehouse is charged for what its tables have in S3."""
    name = names[0]
    write_spec(project, {**read_spec(project, name), "limits": {"tables": 4}, "labels": {"team": "orders"}})
    assert call("stack", "init", name).returncode == 0
    assert call("fleet", "up", "--yes", "--stack", name, "--engine", "embedded", "--json").returncode == 0
    config = CatalogConfig.from_json(call("config", "--stack", name, "--format", "json").stdout)
    catalog = open_catalog(config, "executions")
    now = datetime.now(UTC)
    sizes: dict[str, int] = {}
    for ago in (61, 31, 1):
        catalog.load_table("results.orders").append(pa.table({"id": pa.array(range(ago), pa.int64())}))
        (usage,), problems = record_usage(config, {"executions": catalog}, now - timedelta(days=ago))
        assert problems == []
        sizes[usage.day] = usage.bytes_live
    (project / "prices.yaml").write_text("currency: EUR\nstorage_gb_month: 1000000\n")
    costs = ("fleet", "usage", "--since", "90d", "--stack", name, "--prices", str(project / "prices.yaml"))

    report = json.loads(call(*costs, "--by", "label=team", "--json").stdout)
    printed = call(*costs, "--csv")
    rows = list(csv.DictReader(io.StringIO(printed.stdout)))
    lines = call(*costs, "--by", "owner").stdout

    assert {group["group"] for group in report["groups"]} == {"orders"}
    assert sum(group["days"] for group in report["groups"]) == 3
    live = [row for row in rows if row["SkuId"] == "storage-live"]
    assert live, printed.stdout + printed.stderr
    assert sum(Decimal(row["ConsumedQuantity"]) for row in live) * 10**9 == sum(sizes.values())
    by_month: dict[str, Fraction] = {}
    for day, size in sizes.items():
        month = date.fromisoformat(day)
        cost = Fraction(size, 1000 * monthrange(month.year, month.month)[1])
        by_month[day[:7]] = by_month.get(day[:7], Fraction()) + cost
    assert [abs(Decimal(row["BilledCost"]) - to_decimal(by_month[row["BillingPeriodStart"][:7]])) for row in live] == [
        0
    ] * len(live)
    assert report["focus"] == rows
    (limit,) = report["limits"]
    assert (limit["quantity"], limit["limit"], limit["used"]) == ("tables", 4, 2), "the table, and ops.daily_usage"
    assert lines.startswith("MONTH")
    assert f" {name} " in lines, "a warehouse without an owner counts for its tenant"
    refused = call("fleet", "usage", "--stack", name, "--by", "owner")
    assert (refused.returncode, "expected --since" in refused.stderr) == (2, True)
    misnamed = call(*costs, "--textfile", str(project / "usage.txt"))
    assert "expected a name that ends in .prom" in misnamed.stderr
    assert misnamed.stdout == ""


@pytest.mark.long
def test_a_failed_check_of_a_wave_stops_the_rollout(project: Path, names: list[str], call: Call) -> None:
    canary, other = names
    spec = read_spec(project, canary)
    spec["labels"] = {"canary": "yes"}
    spec["checks"] = [{"table": "executions.results.orders", "min_rows": 1}]
    write_spec(project, spec)
    waves = ("fleet", "up", "--yes", "--create", "--engine", "embedded", "--waves", "canary,rest", "--json")

    stopped = call(*waves)
    assert call("drift", "--stack", canary).returncode == 7
    write_spec(project, spec | {"checks": []})
    resumed = call(*waves, "--resume")

    report = json.loads(stopped.stdout)
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert statuses(report) == {canary: "changed", other: "skipped"}
    assert [(wave["wave"], wave["status"]) for wave in report["waves"]] == [("canary", "failed"), ("rest", "skipped")]
    (fault,) = report["waves"][0]["faults"]
    assert fault.startswith(f"{canary}: 1 difference, the first: ")
    assert fault.endswith(f"check; `lakewright drift --stack {canary}` shows all")
    report = json.loads(resumed.stdout)
    assert resumed.returncode == 0, resumed.stdout + resumed.stderr
    assert statuses(report)[other] == "changed"
    assert [wave["status"] for wave in report["waves"]] == ["passed", "updated"]


def test_an_unmanaged_role_is_a_fault_of_a_wave(
    project: Path, names: list[str], call: Call, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = names[0]
    assert call("stack", "init", name).returncode == 0
    assert call("up", "--yes", "--stack", name, "--engine", "embedded").returncode == 0
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, headers={"x-project-id": name}) as lakekeeper:
        lakekeeper.post("/management/v1/role", json={"name": "stray"}).raise_for_status()
    monkeypatch.setenv("PULUMI_BACKEND_URL", (project / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    pulumi_project = PulumiProject.load(project)

    faults = find_faults(pulumi_project, select(pulumi_project, Selection((name,))))

    difference = "1 difference, the first: stray unmanaged"
    assert faults == [f"{name}: {difference}; `lakewright drift --stack {name}` shows all"]
