"""An update by a kept plan does the steps of the preview, and stops where the program causes another step."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs.options import HEADER
from stackrunner import Stack

PROGRAM = """
config = pulumi.Config()
content = config.get("content") or "first"
a = File("a", "a.json", content)
File("b", "b.json", a.etag)
if step != 3:
    File("c", "c.json", "c" if step == 1 else os.environ.get("CONTENT_OF_C", "c"))
if step == 4:
    File("d", "d.json", "d")
"""
OPTIONS_PROGRAM = """
File("a", f"a{step}.json", "delete-first" if step > 1 else "a", opts=Options(protect=os.environ.get("PROTECT") == "1"))
"""


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    """Return a deployed stack with the files a, b and c."""
    stack = Stack(tmp_path, HEADER + PROGRAM)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    return stack


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    return tmp_path / "plan.json"


def test_update_does_the_planned_steps(stack: Stack, plan: Path) -> None:
    stack.set_config("conf:content", "second")
    planned = stack.run("preview", env={"STEP": "3"}, save_plan=plan)
    done = stack.run("up", env={"STEP": "3"}, plan=plan)
    assert (planned.exit, done.exit) == (0, 0), done.messages
    assert sorted(map(str, planned.steps)) == sorted(map(str, done.steps))
    assert done.changes == planned.changes == {"same": 1, "update": 2, "delete": 1}
    assert done.files["b.json"]["content"] == "etag-second"


def test_unknown_value_may_turn_out_unchanged(tmp_path: Path, plan: Path) -> None:
    """A new `a` makes the content of b unknown in the preview; in the update it is as before."""
    stack = Stack(tmp_path, HEADER + 'a = File("a", f"a{step}.json", "same")\nFile("b", "b.json", a.etag)\n')
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    planned = stack.run("preview", env={"STEP": "2"}, save_plan=plan)
    done = stack.run("up", env={"STEP": "2"}, plan=plan)
    assert done.exit == 0, done.messages
    assert planned.changes["update"] == 1
    assert done.changes == {"same": 2, "replace": 1}


def test_another_input_stops_the_update(stack: Stack, plan: Path) -> None:
    assert stack.run("preview", env={"STEP": "2", "CONTENT_OF_C": "planned"}, save_plan=plan).exit == 0
    done = stack.run("up", env={"STEP": "2", "CONTENT_OF_C": "other"}, plan=plan)
    assert done.exit == 1
    assert 'store:File \'c\': property content: planned "planned", now "other"' in done.messages[0]
    assert done.files["c.json"]["content"] == "c"


def test_unplanned_step_stops_the_update(stack: Stack, plan: Path) -> None:
    assert stack.run("preview", env={"STEP": "1"}, save_plan=plan).exit == 0
    done = stack.run("up", env={"STEP": "4"}, plan=plan)
    assert done.exit == 1
    assert "store:File 'd': the plan does not have the step `create`" in done.messages[0]
    assert "d.json" not in done.files


def test_missing_step_stops_before_deletions(stack: Stack, plan: Path) -> None:
    assert stack.run("preview", env={"STEP": "2", "CONTENT_OF_C": "new"}, save_plan=plan).exit == 0
    done = stack.run("up", env={"STEP": "3"}, plan=plan)
    assert done.exit == 1
    assert "store:File 'c': the plan has the step `update`, but the program no longer declares" in done.messages[0]
    assert "c.json" in done.files


def test_unplanned_deletion_stops_the_update(stack: Stack, plan: Path) -> None:
    assert stack.run("preview", env={"STEP": "4"}, save_plan=plan).exit == 0
    assert stack.run("up", env={"STEP": "4"}).exit == 0
    assert stack.run("preview", env={"STEP": "4"}, save_plan=plan).exit == 0
    done = stack.run("up", env={"STEP": "1"}, plan=plan)
    assert done.exit == 1
    assert "'d'" in done.messages[0]
    assert "d.json" in done.files


def test_changed_option_stops_before_early_deletion(tmp_path: Path, plan: Path) -> None:
    """The old object of a delete-before-replace is kept if the new one is not as planned."""
    stack = Stack(tmp_path, HEADER + OPTIONS_PROGRAM)
    assert stack.run("up", env={"STEP": "1"}).exit == 0
    assert stack.run("preview", env={"STEP": "2"}, save_plan=plan).exit == 0
    done = stack.run("up", env={"STEP": "2", "PROTECT": "1"}, plan=plan)
    assert done.exit == 1
    assert "(option protect): planned False, now True" in done.messages[0]
    assert list(done.files) == ["a1.json"]
