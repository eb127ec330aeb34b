"""`lakewright check` on a deployed tenant: tables with recent and old rows, sizes, and rights of roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest
from lakewright.data_checks.result import StackChecks
from lakewright.data_checks.run import run_checks
from lakewright.data_checks.target_loading import check_targets
from lakewright.fleet.selection import Selection, select
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.times import format_time

from tests.integration.tenant.verify.conftest import deploy_tenant
from tests.tenant_project import PASSPHRASE, Tenant

pytestmark = [pytest.mark.xdist_group("data-checks"), pytest.mark.timeout(300)]

COLUMNS = [{"name": "day", "type": "date"}, {"name": "at", "type": "timestamptz"}, {"name": "note", "type": "string"}]
Evaluate = Callable[..., StackChecks]


@pytest.fixture(scope="module")
def now() -> datetime:
    """Return the time of these tests, which may run hours after they were collected."""
    return datetime.now(UTC)


@pytest.fixture(scope="module")
def umbrella(project: Path, sandbox: Sandbox, now: datetime) -> Tenant:
    """A tenant with a table of three commits, an empty table, a table with remote signing, and a role of analysts."""
    tables = [
        {"name": "executions.results.runs", "columns": COLUMNS, "partition_by": ["day"]},
        {"name": "executions.results.empty", "columns": COLUMNS},
        {"name": "signed.results.events", "columns": COLUMNS},
    ]
    warehouses = [
        {"name": "executions", "namespaces": ["results"], "deletion": "purge"},
        {"name": "signed", "namespaces": ["results"], "delegation": "remote-signing", "deletion": "purge"},
    ]
    grants = [{"to": "role:analysts", "privilege": "select", "on": {"warehouse": "executions"}}]
    units = [{"name": "unit", "runtime": "spark", "warehouses": "all"}]
    parts = {"warehouses": warehouses, "tables": tables, "grants": grants, "computing_units": units}
    tenant = deploy_tenant(project, sandbox, "umbrella", **parts)
    for days in (9, 3, 1):
        append(tenant, "executions", "results.runs", now - timedelta(days=days))
    append(tenant, "signed", "results.events", now - timedelta(hours=1))
    return tenant


def append(tenant: Tenant, warehouse: str, table: str, at: datetime) -> None:
    loaded = tenant.catalog(warehouse).load_table(table)
    row = {"day": at.date(), "at": at, "note": "x" * 100}
    loaded.append(pa.Table.from_pylist([row], schema=loaded.schema().as_arrow()))


@pytest.fixture
def evaluate_tenant(monkeypatch: pytest.MonkeyPatch) -> Evaluate:
    """Return a function that evaluates checks of a tenant in this process."""

    def run(tenant: Tenant, *checks: dict[str, Any], later: timedelta = timedelta()) -> StackChecks:
        monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
        monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
        tenant.spec["checks"] = [*checks]
        tenant.write()
        project = PulumiProject.load(tenant.folder)
        targets, unreadable = check_targets(project, select(project, Selection((tenant.name,))))
        [result] = run_checks(targets, clock=lambda: datetime.now(UTC) + later) or unreadable
        return result

    return run


@pytest.fixture
def evaluate(umbrella: Tenant, evaluate_tenant: Evaluate) -> Evaluate:
    """Return a function that evaluates checks of the tenant `umbrella` in this process."""
    return partial(evaluate_tenant, umbrella)


def outcomes(result: StackChecks) -> dict[str, str]:
    assert not result.problems
    return {f"{check.check} {check.assertion}": check.outcome for check in result.checks}


def test_tables_exist_with_recent_rows(evaluate: Evaluate) -> None:
    runs = "executions.results.runs"
    result = evaluate(
        {"table": runs, "min_rows": 3, "newer_than": "2h"},
        {"table": runs, "newer_than": "26h", "column": "at"},
        {"table": runs, "newer_than": "2d", "column": "day"},
        {"table": "signed.results.events", "newer_than": "2h", "column": "at"},
    )

    assert set(outcomes(result).values()) == {"passed"}
    assert len(result.checks) == 9


def test_old_missing_and_empty_tables_fail(evaluate: Evaluate, now: datetime) -> None:
    result = evaluate(
        {"table": "executions.results.runs", "min_rows": 4, "newer_than": "20h", "column": "at"},
        {"table": "executions.results.empty", "min_rows": 1, "newer_than": "2h"},
        {"table": "executions.results.absent"},
    )

    assert outcomes(result) == {
        "table executions.results.runs exists": "passed",
        "table executions.results.runs min_rows": "failed",
        "table executions.results.runs newer_than": "failed",
        "table executions.results.empty exists": "passed",
        "table executions.results.empty min_rows": "failed",
        "table executions.results.empty newer_than": "failed",
        "table executions.results.absent exists": "failed",
    }
    [age] = [check for check in result.checks if check.check.endswith("runs") and check.assertion == "newer_than"]
    assert age.finding == f"newest value: {format_time(now - timedelta(days=1))}"


def test_snapshots_age_with_the_clock(evaluate: Evaluate) -> None:
    check = {"table": "executions.results.runs", "newer_than": "2h"}

    assert (
        "passed" in outcomes(evaluate(check, later=timedelta(minutes=90)))["table executions.results.runs newer_than"]
    )
    assert "failed" in outcomes(evaluate(check, later=timedelta(hours=3)))["table executions.results.runs newer_than"]


@pytest.mark.parametrize(("column", "kind"), [("note", "string"), ("payload", "a nested type")])
def test_column_without_time_proves_nothing(evaluate: Evaluate, umbrella: Tenant, column: str, kind: str) -> None:
    """Such a check does not end the later checks of the tenant."""
    rows = pa.table({"note": ["x"], "payload": [{"at": "now"}]})
    umbrella.catalog("executions").create_table_if_not_exists("results.texts", schema=rows.schema).append(rows)

    result = evaluate(
        {"table": "executions.results.texts", "newer_than": "2h", "column": column},
        {"table": "executions.results.runs"},
    )

    assert outcomes(result) == {
        "table executions.results.texts exists": "passed",
        "table executions.results.texts newer_than": "not evaluated",
        "table executions.results.runs exists": "passed",
    }
    assert result.checks[1].finding == f"column {column} has type {kind}; expected a date or timestamp"


def test_warehouse_sizes(evaluate: Evaluate) -> None:
    large = evaluate(
        {"warehouse": "executions", "max_bytes": "1MiB"},
        {"warehouse": "executions", "max_bytes": "1MiB", "of": "stored"},
    )
    small = evaluate(
        {"warehouse": "executions", "max_bytes": "1KiB"},
        {"warehouse": "executions", "max_bytes": "1KiB", "of": "stored"},
    )

    assert [check.outcome for check in large.checks] == ["passed", "passed"]
    assert [check.outcome for check in small.checks] == ["failed", "failed"]


def test_rights_of_roles(evaluate: Evaluate) -> None:
    everything, table = {"warehouse": "executions"}, {"warehouse": "executions", "table": "results.runs"}
    result = evaluate(
        {"principal": "role:analysts", "on": everything, "can": ["read"], "cannot": ["write"]},
        {"principal": "role:analysts", "on": table, "can": ["write"]},
        {"principal": "role:analysts", "on": {"warehouse": "signed"}, "can": ["read"]},
        {"principal": "user:oidc~nobody", "on": everything, "cannot": ["read", "write"]},
    )

    assert [check.outcome for check in result.checks] == ["passed", "passed", "failed", "failed", "passed", "passed"]
    assert result.checks[2].finding == "denied: write results.runs (of 1)"


@pytest.fixture
def foreign_analysts(stack_http: httpx.Client) -> Iterator[None]:
    """A role `analysts` of another program in the default project, without rights."""
    response = stack_http.post("/management/v1/role", json={"name": "analysts"}).raise_for_status()
    yield
    stack_http.delete(f"/management/v1/role/{response.json()['id']}").raise_for_status()


@pytest.mark.usefixtures("foreign_analysts")
def test_rights_of_roles_in_a_shared_project(project: Path, sandbox: Sandbox, evaluate_tenant: Evaluate) -> None:
    """The stack's role has the tenant's name on the server, and the check has the name in the spec."""
    tenant = deploy_tenant(
        project,
        sandbox,
        "hooli",
        project={"shared": True},
        warehouses=[{"name": "hooli-results", "namespaces": ["results"], "deletion": "purge"}],
        tables=[{"name": "hooli-results.results.t", "columns": COLUMNS}],
        grants=[{"to": "role:analysts", "privilege": "select", "on": {"warehouse": "hooli-results"}}],
    )

    result = evaluate_tenant(
        tenant,
        {"principal": "role:analysts", "on": {"warehouse": "hooli-results"}, "can": ["read"], "cannot": ["write"]},
    )

    assert [check.outcome for check in result.checks] == ["passed", "passed"]
    assert result.checks[0].check == "role:analysts on hooli-results"


def test_rights_of_iam_roles(evaluate: Evaluate, umbrella: Tenant) -> None:
    arns = json.loads(umbrella.output("stack", "output", "--json"))["role_arns"]
    result = evaluate(
        {"principal": arns["executions"], "on": {"warehouse": "executions"}, "can": ["read", "write"]},
        {"principal": arns["executions"], "on": {"warehouse": "signed"}, "cannot": ["read", "write"]},
        {"principal": arns["signed"], "on": {"warehouse": "executions", "table": "results.runs"}, "can": ["read"]},
        {"principal": f"{arns['signed']}-absent", "on": {"warehouse": "signed"}, "can": ["read"]},
    )

    assert [check.outcome for check in result.checks] == [*["passed"] * 4, "failed", "not evaluated"]


def test_command_reports_and_exits(evaluate: Evaluate, umbrella: Tenant) -> None:
    evaluate({"table": "executions.results.runs", "min_rows": 4})

    done = umbrella.run("check", "--json")

    document = json.loads(done.stdout)
    assert (done.returncode, document["exit"]) == (7, 7)
    assert [check["outcome"] for check in document["stacks"][0]["checks"]] == ["passed", "failed"]
