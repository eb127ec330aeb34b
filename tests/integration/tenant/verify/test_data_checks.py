"""`lakewright check` on a deployed tenant: tables with recent and old rows, sizes, and rights of roles."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pyarrow as pa
import pytest
from lakewright.aws.access import trust_policy
from lakewright.data_checks.result import StackChecks
from lakewright.data_checks.run import run_checks
from lakewright.data_checks.target_loading import check_targets
from lakewright.fleet.selection import Selection, select
from lakewright.validation.moment import format_moment
from lakewright_engine.project.project import PulumiProject
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.times import format_time

from tests.integration.tenant.conftest import aws_client
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


MakeRole = Callable[..., str]


@pytest.fixture
def make_role(sandbox: Sandbox) -> Iterator[MakeRole]:
    """Return a function that makes an IAM role with a policy of some statements, and returns its ARN."""
    iam = aws_client(sandbox, "iam")
    names: list[str] = []

    def make(*statements: dict[str, Any]) -> str:
        name = f"reader-{uuid4().hex[:8]}"
        document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", **part} for part in statements]}
        trust = json.dumps(trust_policy(sandbox.aws.catalog_principal_arn, "0123456789abcdef"))
        role = iam.create_role(RoleName=name, AssumeRolePolicyDocument=trust)["Role"]
        names.append(name)
        iam.put_role_policy(RoleName=name, PolicyName="files", PolicyDocument=json.dumps(document))
        return str(role["Arn"])

    yield make
    for name in names:
        iam.delete_role_policy(RoleName=name, PolicyName="files")
        iam.delete_role(RoleName=name)


BUCKET = "arn:aws:s3:::umbrella-lakehouse"


@pytest.mark.parametrize("folder", ["data", "metadata"])
def test_iam_role_that_reads_one_folder_of_tables_fails(evaluate: Evaluate, make_role: MakeRole, folder: str) -> None:
    reader = make_role({"Action": "s3:GetObject", "Resource": f"{BUCKET}/umbrella/executions/*/{folder}/*"})

    result = evaluate(
        {"principal": reader, "on": {"warehouse": "executions"}, "cannot": ["read"]},
        {"principal": reader, "on": {"warehouse": "executions", "table": "results.runs"}, "cannot": ["read"]},
        {"principal": reader, "on": {"warehouse": "executions"}, "cannot": ["write"]},
        {"principal": reader, "on": {"warehouse": "executions"}, "can": ["read"]},
        {"principal": reader, "on": {"warehouse": "signed"}, "cannot": ["read"]},
    )

    assert [check.outcome for check in result.checks] == ["failed", "failed", "passed", "failed", "passed"]
    assert f"/{folder}/*" in result.checks[0].finding


def test_iam_role_of_another_account_is_not_evaluated(evaluate: Evaluate, make_role: MakeRole) -> None:
    """The stack's account has a role of the same name."""
    role_arn = make_role({"Action": "s3:*", "Resource": "*"})
    account = role_arn.split(":")[4]
    elsewhere = role_arn.replace(account, "999999999999")
    below_a_path = role_arn.replace("role/", "role/elsewhere/")

    result = evaluate(
        *(
            {"principal": principal, "on": {"warehouse": "executions"}, "can": ["read"]}
            for principal in (role_arn, elsewhere, below_a_path)
        )
    )

    assert [check.outcome for check in result.checks] == ["passed", "not evaluated", "not evaluated"]
    advice = "name that role, or run the check with an identity of the other account"
    assert result.checks[1].finding.endswith(f"{role_arn}; {advice}")


def test_iam_role_with_conditions(evaluate: Evaluate, make_role: MakeRole, now: datetime) -> None:
    """The time and TLS are evaluated. Another condition of an Allow may fail, of a Deny may hold."""
    everything = {"Action": "s3:*", "Resource": f"{BUCKET}/*"}
    tomorrow, yesterday = (format_moment(now + timedelta(days=days)) for days in (1, -1))
    conditional = make_role({**everything, "Condition": {"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}})
    deny = {**everything, "Effect": "Deny", "Condition": {"StringNotEquals": {"aws:SourceVpce": "vpce-1"}}}
    limited = make_role(everything, deny)
    plain_http = {**everything, "Effect": "Deny", "Condition": {"Bool": {"aws:SecureTransport": "false"}}}
    valid = make_role({**everything, "Condition": {"DateLessThan": {"aws:CurrentTime": tomorrow}}}, plain_http)
    ended = make_role({**everything, "Condition": {"DateLessThan": {"aws:CurrentTime": yesterday}}})

    on = {"warehouse": "executions"}
    result = evaluate(
        *({"principal": role, "on": on, "can": ["read"]} for role in (conditional, limited, valid, ended)),
        *({"principal": role, "on": on, "cannot": ["read"]} for role in (conditional, limited, valid, ended)),
    )

    assert [check.outcome for check in result.checks] == [
        *("not evaluated", "not evaluated", "passed", "failed"),
        *("failed", "failed", "failed", "passed"),
    ]
    assert result.checks[0].finding.startswith("allowed under conditions: s3:GetObject umbrella/executions/*, ")


def test_tables_whose_joined_names_are_equal(evaluate: Evaluate, umbrella: Tenant) -> None:
    catalog, schema = umbrella.catalog("executions"), pa.schema([("n", pa.int64())])
    for namespace in (("dotted",), ("dotted", "x")):
        catalog.create_namespace_if_not_exists(namespace)
    for identifier in (("dotted", "x.y"), ("dotted", "x", "y")):
        catalog.create_table_if_not_exists(identifier, schema=schema)

    target = {"warehouse": "executions", "namespace": "dotted"}
    [check] = evaluate({"principal": "user:oidc~nobody", "on": target, "cannot": ["read"]}).checks

    assert (check.outcome, check.finding) == ("passed", "denied: read dotted.`x.y`, read dotted.x.y")


def test_command_reports_and_exits(evaluate: Evaluate, umbrella: Tenant) -> None:
    evaluate({"table": "executions.results.runs", "min_rows": 4})

    done = umbrella.run("check", "--json")

    document = json.loads(done.stdout)
    assert (done.returncode, document["exit"]) == (7, 7)
    assert [check["outcome"] for check in document["stacks"][0]["checks"]] == ["passed", "failed"]
