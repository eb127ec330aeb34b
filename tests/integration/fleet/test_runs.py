"""Operations on many stacks: parallel, after errors, interrupted, killed and resumed."""

from __future__ import annotations

import json
import os
import pty
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.command_server import LAKEWRIGHT
from tests.integration.fleet.conftest import FleetProject, statuses

pytestmark = pytest.mark.xdist_group("fleet")

PATIENCE_SECONDS = 60


def wait_until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the condition does not hold"
        time.sleep(0.02)


def is_waiting(fleet: FleetProject, stack: str) -> Callable[[], bool]:
    """Return a condition: the program of a stack runs, and waits."""
    return (fleet.folder / f"{stack}.is-waiting").exists


def test_preview_and_up_report_each_stack(fleet: FleetProject) -> None:
    previewed = fleet.report("preview", "--label", "tier=gold")
    updated = fleet.report("up", "--yes", "--stack", "[ab]", "--stack", "c")
    second_preview = fleet.report("preview", "--expect-no-changes", exit_code=7)

    assert statuses(previewed) == {"a": "changed", "b": "changed"}
    assert statuses(updated) == {"a": "changed", "b": "changed", "c": "changed"}
    assert statuses(second_preview) == {"a": "unchanged", "b": "unchanged", "c": "unchanged", "d": "changed"}
    assert second_preview["summary"] == {"unchanged": 3, "changed": 1}
    entry = updated["stacks"][0]
    assert (entry["tenant"], entry["environment"], entry["labels"]) == ("tenant-a", "sandbox", {"tier": "gold"})
    assert {(step["op"], step["name"]) for step in entry["steps"]} >= {("create", "thing")}
    assert json.loads(Path(entry["log"]).with_suffix(".json").read_text())["changes"] == entry["changes"]


@pytest.mark.long
def test_a_spec_without_a_stack_stops_no_other(fleet: FleetProject) -> None:
    salt = (fleet.folder / "Pulumi.a.yaml").read_text()
    (fleet.folder / "Pulumi.e.yaml").write_text(salt)
    fleet.write("e")
    try:
        previewed = fleet.report("preview", "--stack", "[ade]")
        updated = fleet.run("up", "--yes", "--stack", "[de]", "--engine", "embedded")
        alone = fleet.report("refresh", "--yes", "--stack", "e")
        created = fleet.report("up", "--create", "--yes", "--stack", "[de]")
    finally:
        (fleet.folder / "Pulumi.e.yaml").unlink()

    assert statuses(previewed) == {"a": "changed", "d": "changed", "e": "not deployed"}
    assert previewed["summary"] == {"changed": 2, "not deployed": 1}
    assert updated.returncode == 0, updated.stdout + updated.stderr
    assert "not deployed: e; `lakewright fleet up --create` creates their stacks" in updated.stdout
    assert statuses(alone) == {"e": "not deployed"}
    assert statuses(created) == {"d": "unchanged", "e": "changed"}


def test_a_stack_that_cannot_be_created_stops_no_other(fleet: FleetProject) -> None:
    (fleet.folder / "Pulumi.e.yaml").write_text("encryptionsalt: v1:bad\nconfig: {}\n")
    try:
        created = fleet.report("up", "--create", "--yes", "--stack", "[ae]", exit_code=1)
    finally:
        (fleet.folder / "Pulumi.e.yaml").unlink()

    assert statuses(created) == {"a": "changed", "e": "failed"}
    assert created["stacks"][1]["error"].startswith("the stack could not be created: ")


def test_resume_updates_a_stack_that_was_not_created(fleet: FleetProject) -> None:
    file = fleet.folder / "Pulumi.e.yaml"
    file.write_text("encryptionsalt: v1:bad\nconfig: {}\n")
    try:
        failed = fleet.report("up", "--create", "--yes", "--stack", "[ae]", exit_code=1)
        file.write_text((fleet.folder / "Pulumi.a.yaml").read_text())
        resumed = fleet.report("up", "--create", "--yes", "--stack", "[ae]", "--resume")
    finally:
        file.unlink()

    assert statuses(failed) == {"a": "changed", "e": "failed"}
    assert statuses(resumed) == {"a": "changed", "e": "changed"}
    assert [entry["resumed"] for entry in resumed["stacks"]] == [True, False]


def test_resume_creates_a_stack_that_was_not_deployed(fleet: FleetProject) -> None:
    file = fleet.folder / "Pulumi.e.yaml"
    file.write_text((fleet.folder / "Pulumi.a.yaml").read_text())
    try:
        updated = fleet.report("up", "--yes", "--stack", "[ae]")
        resumed = fleet.report("up", "--create", "--yes", "--stack", "[ae]", "--resume")
    finally:
        file.unlink()

    assert statuses(updated) == {"a": "changed", "e": "not deployed"}
    assert statuses(resumed) == {"a": "changed", "e": "changed"}


def test_a_stack_that_cannot_be_created_stops_later_waves(fleet: FleetProject) -> None:
    (fleet.folder / "Pulumi.e.yaml").write_text("encryptionsalt: v1:bad\n")
    for stack in "ae":
        fleet.write(stack, labels={"canary": "yes"})
    try:
        waves = ("--create", "--waves", "canary,rest", "--stack", "[abe]")
        report = fleet.report("up", "--yes", *waves, exit_code=1)
    finally:
        (fleet.folder / "Pulumi.e.yaml").unlink()

    assert statuses(report) == {"a": "changed", "b": "skipped", "e": "failed"}
    assert [wave["status"] for wave in report["waves"]] == ["failed", "skipped"]
    (fault,) = report["waves"][0]["faults"]
    assert fault.startswith("e: the stack could not be created: ")


def test_an_error_stops_the_run_unless_it_shall_continue(fleet: FleetProject) -> None:
    fleet.write("b", fails=True)

    stopped = fleet.report("up", "--yes", "--parallel-stacks", "1", exit_code=1)
    continued = fleet.report("up", "--yes", "--parallel-stacks", "1", "--on-error", "continue", exit_code=1)

    assert statuses(stopped) == {"a": "changed", "b": "failed", "c": "skipped", "d": "skipped"}
    assert statuses(continued) == {"a": "unchanged", "b": "failed", "c": "changed", "d": "changed"}
    assert "the program fails" in continued["stacks"][1]["error"]


def test_resume_runs_only_remaining_stacks(fleet: FleetProject) -> None:
    fleet.write("b", fails=True)
    fleet.report("up", "--yes", "--parallel-stacks", "1", exit_code=1)
    fleet.write("b")

    resumed = fleet.report("up", "--yes", "--resume")

    assert statuses(resumed) == dict.fromkeys("abcd", "changed")
    assert [entry["resumed"] for entry in resumed["stacks"]] == [True, False, False, False]


@pytest.mark.long
def test_resume_runs_changed_stacks_again(fleet: FleetProject) -> None:
    fleet.report("up", "--yes", "--stack", "[ab]")
    fleet.write("a", value="2")

    resumed = fleet.report("up", "--yes", "--resume", "--stack", "[ab]")

    assert [(entry["status"], entry["resumed"]) for entry in resumed["stacks"]] == [
        ("changed", False),
        ("changed", True),
    ]


def test_resume_refuses_stacks_that_the_run_did_not_have(fleet: FleetProject) -> None:
    fleet.report("up", "--yes", "--stack", "[ab]")

    resumed = fleet.run("up", "--yes", "--engine", "embedded", "--resume", "--stack", "c")

    assert (resumed.returncode, resumed.stdout) == (2, "")
    assert "has none of the selected stacks, only a, b" in resumed.stderr


def test_the_confirmation_names_the_changed_resources(fleet: FleetProject) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(fleet.folder)
        command = [LAKEWRIGHT, "fleet", "up", "--stack", "a", "--engine", "embedded"]
        os.execve(LAKEWRIGHT, command, {**fleet.environ, "TERM": "dumb"})
    printed = b""
    while b"[y/N]" not in printed:
        printed += os.read(terminal, 4096)

    os.write(terminal, b"n\n")

    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 1
    assert b"create pulumi-python:dynamic:Resource thing" in printed
    assert b"  create  1 Resource\r\n" in printed
    (file,) = fleet.folder.glob(".lakewright/fleet/preview/*/changes.txt")
    assert "create pulumi-python:dynamic:Resource thing" in file.read_text()
    assert not fleet.project.backend().export("fleet", "a")["deployment"].get("resources")


def test_one_ctrl_c_finishes_and_names_the_remaining_stacks(fleet: FleetProject) -> None:
    (fleet.folder / "a.waits").touch()
    process = fleet.start("up", "--yes", "--parallel-stacks", "1", "--engine", "embedded", "--json")
    wait_until(is_waiting(fleet, "a"))

    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()

    report = json.loads(stdout)
    assert (process.returncode, report["exit"]) == (130, 130)
    assert statuses(report) == {"a": "interrupted", "b": "skipped", "c": "skipped", "d": "skipped"}
    assert "no other stack starts. 1 stack still running" in stderr
    (fleet.folder / "a.waits").unlink()
    assert set(statuses(fleet.report("up", "--yes", "--resume")).values()) == {"changed"}


def test_a_killed_run_is_resumed(fleet: FleetProject) -> None:
    """Kill the fleet, and one of the stacks' processes; the other process finishes by itself."""
    for stack in "ab":
        (fleet.folder / f"{stack}.waits").touch()
    process = fleet.start("up", "--yes", "--parallel-stacks", "2", "--engine", "embedded", "--json")
    wait_until(is_waiting(fleet, "a"))
    wait_until(is_waiting(fleet, "b"))
    process.kill()
    process.communicate()
    journal = json.loads(next(fleet.folder.glob(".lakewright/fleet/up/*/run.json")).read_text())
    os.kill(journal["stacks"]["b"]["pid"], signal.SIGKILL)

    resumed = fleet.start("up", "--yes", "--resume", "--parallel-stacks", "2", "--engine", "embedded", "--json")
    for stack in "ab":
        (fleet.folder / f"{stack}.waits").unlink()
    stdout, stderr = resumed.communicate()

    assert resumed.returncode == 0, stdout + stderr
    results = statuses(json.loads(stdout))
    assert results.pop("a") in ("changed", "unchanged"), "its process may end before the second run looks for it"
    assert results == dict.fromkeys("bcd", "changed")
    assert set(statuses(fleet.report("preview", "--expect-no-changes")).values()) == {"unchanged"}


@pytest.mark.long
def test_damaged_and_locked_states_hide_no_other(fleet: FleetProject) -> None:
    fleet.state_file("b").write_text('{"version": 3, "checkpoint"')
    with fleet.project.backend().lock("fleet", "c"):
        report = fleet.report("up", "--yes", "--on-error", "continue", exit_code=1)
        list_result = fleet.run("list", "--json")

    assert statuses(report) == {"a": "changed", "b": "failed", "c": "failed", "d": "changed"}
    errors = {entry["stack"]: entry["error"] for entry in report["stacks"]}
    assert "is damaged" in errors["b"]
    assert "locked" in errors["c"]
    stacks = {entry["stack"]: entry for entry in json.loads(list_result.stdout)["stacks"]}
    assert list_result.returncode == 1
    assert "is damaged" in stacks["b"]["problem"]
    assert str(os.getpid()) in stacks["c"]["locked_by"][0]
    assert (stacks["a"]["resources"], stacks["a"]["last_result"]) == (2, "succeeded"), "as counted by up"


def test_changes_need_yes_without_a_terminal(fleet: FleetProject) -> None:
    for verb in ("up", "refresh"):
        completed = fleet.run(verb)

        assert (completed.returncode, completed.stdout) == (2, "")
        assert f"fleet {verb} needs --yes" in completed.stderr


@pytest.mark.parametrize("arguments", [["--resume"], ["--stack", "nothing*"]])
def test_impossible_runs_are_refused(fleet: FleetProject, arguments: list[str]) -> None:
    completed = fleet.run("preview", *arguments)

    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr.startswith("error: ")
    assert len(completed.stderr.splitlines()) == 1


@pytest.mark.long
def test_plans_are_kept_and_followed(fleet: FleetProject) -> None:
    plans = fleet.folder / "plans"

    previewed = fleet.report("preview", "--stack", "[ab]", "--save-plans", str(plans))
    fleet.write("b", value="2")
    updated = fleet.report("up", "--plans", str(plans), "--on-error", "continue", exit_code=1)
    absent = fleet.run("up", "--plans", str(plans), "--stack", "c")

    assert statuses(previewed) == {"a": "changed", "b": "changed"}
    assert sorted(file.name for file in plans.iterdir()) == ["a.plan.json", "b.plan.json"]
    assert statuses(updated) == {"a": "changed", "b": "failed"}
    assert (absent.returncode, absent.stdout) == (2, "")
    assert "has no plan of c" in absent.stderr


@pytest.mark.long
def test_drift_takes_the_filters_of_the_fleet(fleet: FleetProject) -> None:
    fleet.report("up", "--yes", "--stack", "a")

    completed = fleet.run("drift", "--label", "tier=gold", "--json")

    assert [entry["stack"] for entry in json.loads(completed.stdout)["stacks"]] == ["a", "b"]


def test_list_shows_stacks_without_state_and_without_file(fleet: FleetProject) -> None:
    (fleet.folder / "Pulumi.d.yaml").unlink()
    (fleet.folder / "Pulumi.e.yaml").write_text("config: {}\n")

    completed = fleet.run("list")

    lines = {line.split()[0]: line for line in completed.stdout.splitlines()}
    assert lines["a"].split()[1:4] == ["tenant-a", "sandbox", "tier=gold"]
    assert lines["d"].endswith("no stack file")
    assert lines["e"].endswith("not deployed")
    (fleet.folder / "Pulumi.e.yaml").unlink()


@pytest.mark.pulumi_cli
def test_the_pulumi_cli_runs_a_fleet(fleet: FleetProject) -> None:
    fleet.write("b", fails=True)

    completed = fleet.run("up", "--yes", "--stack", "[ab]", "--engine", "pulumi", "--on-error", "continue", "--json")
    fleet.write("b")
    resumed = fleet.run("up", "--yes", "--resume", "--engine", "pulumi", "--on-error", "continue", "--json")

    assert statuses(json.loads(completed.stdout)) == {"a": "changed", "b": "failed"}, completed.stderr
    assert completed.returncode == 1
    entries = [(entry["status"], entry["resumed"]) for entry in json.loads(resumed.stdout)["stacks"]]
    assert entries == [("changed", True), ("changed", False)]
