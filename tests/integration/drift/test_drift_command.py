"""`lakewright drift`: differences of many stacks, and the effect of one stack's errors on all other stacks."""

from __future__ import annotations

import json
import os
import re
import socket
from typing import Any

import httpx
import pytest
from lakewright.cli.app import run

from tests.integration.drift.fleet import Fleet, change

pytestmark = pytest.mark.stand_in("counts calls, and stops its server")

Props = dict[str, Any]


@pytest.fixture
def drift(capsys: pytest.CaptureFixture[str]) -> Any:
    """Return a function that runs the command, and returns its exit code, standard output and standard error."""

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            run(["drift", *arguments])
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return call


def read_report(drift: Any, *arguments: str) -> tuple[int, dict[str, Props]]:
    """Return the exit code and the stacks of the JSON report, by name."""
    code, out, _ = drift(*arguments, "--json")
    document = json.loads(out)
    assert (document["version"], document["exit"]) == (1, code)
    return code, {stack["stack"]: stack for stack in document["stacks"]}


def test_stacks_as_declared_have_no_drift(fleet: Fleet, drift: Any) -> None:
    fleet.add("acme")
    fleet.add("globex")

    code, out, err = drift("--all")

    assert code == 0
    assert re.match(r"2 tenants, 8 of \d+ resources compared; no drift found\.", out)
    assert "comparing 8 resources of 2 stacks" in err


def test_differences_name_tenant_resource_and_values(fleet: Fleet, http: httpx.Client, drift: Any) -> None:
    acme = fleet.add("acme")
    fleet.add("globex")
    change(http, f"warehouse/{acme.ids['main']}/rename", {"new-name": "theirs"})
    http.delete(f"/management/v1/role/{acme.ids['readers']}", headers={"x-project-id": "acme"}).raise_for_status()

    code, stacks = read_report(drift, "--all")

    assert code == 7
    assert stacks["globex"]["differences"] == []
    deleted_role, renamed = stacks["acme"]["differences"]
    assert (deleted_role["kind"], deleted_role["resource"], deleted_role["property"], deleted_role["found"]) == (
        "gone",
        "readers",
        "",
        None,
    )
    assert (renamed["kind"], renamed["property"]) == ("changed", "name")
    assert (renamed["declared"], renamed["found"], renamed["tenant"]) == ("main", "theirs", "acme")
    assert drift("--stack", "glob*")[0] == 0
    assert "theirs" in drift("--stack", "acme")[1]


def test_errors_of_one_stack_hide_no_other_stack(fleet: Fleet, http: httpx.Client, drift: Any) -> None:
    acme = fleet.add("acme")
    globex = fleet.add("globex")
    (fleet.states / "broken.json").write_text('{"version": 3, "checkpoint": {')
    fleet.write("newer", acme.resources, version=9)
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        unreachable_resources = json.dumps(acme.resources).replace(
            str(http.base_url.port), str(unused.getsockname()[1])
        )
    fleet.write("down", json.loads(unreachable_resources))
    locks = fleet.states.parents[1] / "locks" / "organization" / "lake" / "globex"
    locks.mkdir(parents=True)
    lock = {
        "pid": os.getpid(),
        "username": "ann",
        "hostname": socket.gethostname(),
        "timestamp": "2026-11-20T10:00:00Z",
    }
    (locks / "a.json").write_text(json.dumps(lock))
    change(http, f"warehouse/{globex.ids['main']}/protection", {"protected": True})

    code, stacks = read_report(drift, "--all")

    assert code == 1
    assert (stacks["acme"]["differences"], stacks["acme"]["problems"]) == ([], [])
    assert "damaged" in stacks["broken"]["problems"][0]
    assert "version 9" in stacks["newer"]["problems"][0]
    assert {difference["kind"] for difference in stacks["down"]["differences"]} == {"unreachable"}
    assert len(stacks["down"]["differences"]) == 4
    assert len(stacks["down"]["problems"]) == 1
    assert "cannot be reached" in stacks["down"]["problems"][0]
    assert [difference["property"] for difference in stacks["globex"]["differences"]] == ["protected"]
    assert "ann" in stacks["globex"]["locked"][0]


def test_lists_are_requested_once_for_all_stacks(fleet: Fleet, http: httpx.Client, drift: Any) -> None:
    for name in ("acme", "globex", "initech"):
        fleet.add(name)
    http.delete("/sandbox/v1/calls")

    code, _, _ = drift("--all")

    calls = [f"{call['method']} {call['path']}" for call in http.get("/sandbox/v1/calls").json()["calls"]]
    assert code == 0
    assert calls.count("GET /management/v1/info") == 1
    assert calls.count("GET /management/v1/project-list") == 1
    assert calls.count("GET /management/v1/warehouse") == 3
    # The search for unmanaged objects reads the settings of each queue of a tenant, besides lists.
    assert len(calls) <= 2 + 3 * (4 + 5)


def test_secrets_are_not_decrypted_without_a_difference(fleet: Fleet, http: httpx.Client, drift: Any) -> None:
    acme = fleet.add("acme", secret=True)

    code, stacks = read_report(drift, "--all")
    assert (code, stacks["acme"]["problems"]) == (0, [])

    change(http, f"warehouse/{acme.ids['main']}/storage-credential", {"new-storage-credential": None})
    code, stacks = read_report(drift, "--all")
    assert code == 1, "the state's secret cannot be decrypted for the difference"
    assert "main" in stacks["acme"]["problems"][0]


def test_secrets_are_not_in_the_report(fleet: Fleet, http: httpx.Client, drift: Any) -> None:
    acme = fleet.add("acme")
    change(http, f"warehouse/{acme.ids['main']}/storage-credential", {"new-storage-credential": None})

    code, out, _ = drift("--all", "--json")

    assert code == 7
    assert "hidden-id" not in out
    assert [
        (difference["property"], difference["declared"]) for difference in json.loads(out)["stacks"][0]["differences"]
    ] == [("credential", "[secret]")]


def test_types_without_plugin_are_a_problem(fleet: Fleet, drift: Any) -> None:
    """Objects of other packages are read by their provider, which is not installed here."""
    acme = fleet.add("acme")
    theirs = {"urn": "urn:pulumi:acme::lake::gcp:x:Thing::a", "custom": True, "id": "a", "type": "gcp:x:Thing"}
    provider = {"urn": "urn:pulumi:acme::lake::pulumi:providers:gcp::p", "custom": True, "id": "1"}
    provider |= {"type": "pulumi:providers:gcp", "inputs": {}}
    theirs |= {"provider": f"{provider['urn']}::1"}
    fleet.write("acme", [*acme.resources, provider, theirs])

    code, stacks = read_report(drift, "--all")

    assert code == 1
    assert "no provider for the package 'gcp'" in stacks["acme"]["problems"][0]
    assert stacks["acme"]["resources"] == 5


def test_stacks_must_be_named(fleet: Fleet, drift: Any) -> None:
    fleet.add("acme", team="blue")
    fleet.add("globex", team="red")

    code, out, err = drift()
    assert (code, out) == (2, "")
    assert "--all" in err
    assert drift("--stack", "none-*")[0] == 2
    code, stacks = read_report(drift, "--label", "team=red")
    assert (code, list(stacks)) == (0, ["globex"])


def test_stacks_without_a_state_are_skipped(fleet: Fleet, drift: Any) -> None:
    fleet.add("acme")
    (fleet.states / "acme.json").rename(fleet.states / "other.json")

    code, _, err = drift("--all")

    assert code == 0
    assert "not deployed, so not compared: acme" in err
