"""`lakewright verify` on a catalog that allows everything: there is no isolation."""

from __future__ import annotations

import json

import pytest

from tests.tenant_project import MakeTenant

pytestmark = pytest.mark.timeout(300)


@pytest.mark.long
@pytest.mark.stand_in("its catalog allows everything")
def test_allow_all_catalog_is_no_isolation(make_tenant: MakeTenant) -> None:
    tenant = make_tenant(computing_units=[{"name": "unit", "runtime": "spark", "warehouse": "executions"}])
    tenant.up()

    done = tenant.run("verify", "--json")

    result = json.loads(done.stdout)
    assert (done.returncode, result["holds"]) == (1, False)
    assert {"identity", "authorization", "management"} <= set(result["failed_probes"])
    evidence = [check["evidence"] for check in result["checks"] if check["probe"] == "authorization"]
    assert "no isolation: the catalog allows every request" in evidence
    assert "table" not in result["failed_probes"], "what must work does"
    assert "other-prefixes" not in result["failed_probes"], "S3 is enforced all the same"

    lines = tenant.run("verify", "--failed").stdout.splitlines()

    failed = [check for check in result["checks"] if not check["holds"]]
    assert len(lines) == len(failed) + len(result["notes"]) + 1
    assert all(line.startswith(("failed ", "not proven ")) for line in lines[: len(failed)])
    line = next(line for line in lines if "have rights enforced" in line)
    assert "no isolation: the catalog allows every request; to fix it: start Lakekeeper with" in line
    assert lines[-1].startswith(f"{tenant.name}: no proof of isolation. {len(failed)} checks do not hold: ")

    by_stack = tenant.run("fleet", "verify").stdout.splitlines()

    assert by_stack[0] == f"{tenant.name}:"
    assert len([line for line in by_stack if line.startswith(("failed ", "not proven "))]) == len(failed)
    assert line in by_stack


def test_stack_that_was_never_deployed_is_an_error(make_tenant: MakeTenant) -> None:
    tenant = make_tenant()

    assert "run `lakewright up --stack" in tenant.error("verify")
