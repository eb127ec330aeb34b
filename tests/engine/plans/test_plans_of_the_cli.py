"""Kept plans on the real Pulumi CLI: its own update plan with a header, checked before and during the update."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from programs.options import HEADER
from stackrunner import Stack

from tests.command_server import run_command

pytestmark = pytest.mark.pulumi_cli

PROGRAM = """
a = File("a", "a.json", pulumi.Config().require_secret("content") if step != 3 else pulumi.Output.secret("CANARY-3"))
File("b", f"b{step}.json", a.id)
"""


def lakewright(stack: Stack, *arguments: str, step: int) -> subprocess.CompletedProcess[str]:
    """Run a command on the stack. It must not print a secret."""
    changes = {"STEP": str(step), "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true"}
    done = run_command(arguments, stack.program_dir, {**os.environ, **stack.environment, **changes})
    assert "CANARY" not in done.stdout + done.stderr
    return done


def test_plan_of_the_cli_is_checked_and_followed(tmp_path: Path) -> None:
    stack, plan = Stack(tmp_path, HEADER + PROGRAM), tmp_path / "plan.json"
    stack.set_config("conf:content", "CANARY-1", secret=True)
    on_cli = ("--stack", "dev", "--engine", "pulumi")

    planned = lakewright(stack, "preview", *on_cli, "--save-plan", str(plan), "--json", step=1)
    wrong = lakewright(stack, "up", "--stack", "dev", "--engine", "embedded", "--plan", str(plan), step=1)
    done = lakewright(stack, "up", "--stack", "dev", "--plan", str(plan), step=1)
    used = lakewright(stack, "up", *on_cli, "--plan", str(plan), step=1)

    assert json.loads(planned.stdout)["plan"]["signed"] is True
    assert "CANARY" not in plan.read_text()
    assert "was made by the engine `pulumi`, not by `embedded`. Use --engine pulumi" in wrong.stderr
    assert done.returncode == 0, done.stdout + done.stderr
    assert "state of stack 'dev' has changed since the plan was made" in used.stderr

    stack.set_config("conf:content", "CANARY-2", secret=True)
    lakewright(stack, "preview", *on_cli, "--refresh", "--save-plan", str(plan), step=2)
    a = stack.store / "a.json"
    text = a.read_text()
    a.write_text(json.dumps({**json.loads(text), "size": 7}))
    moved = lakewright(stack, "up", *on_cli, "--plan", str(plan), step=2)
    a.write_text(text)
    other = lakewright(stack, "up", *on_cli, "--plan", str(plan), step=3)

    assert "store:File 'a': property size: was nothing, is 7" in moved.stderr
    assert "violates plan: properties changed: content. Make a new plan" in other.stderr
    assert list(stack.files()) == ["a.json", "b1.json"]


def test_plan_with_other_outputs_names_the_next_step(tmp_path: Path) -> None:
    stack, plan = Stack(tmp_path, HEADER + 'pulumi.export("size", step)'), tmp_path / "plan.json"
    on_cli = ("--stack", "dev", "--engine", "pulumi")
    lakewright(stack, "up", *on_cli, "--yes", step=1)
    lakewright(stack, "preview", *on_cli, "--save-plan", str(plan), step=2)

    other = lakewright(stack, "up", *on_cli, "--plan", str(plan), step=3)

    assert other.returncode == 1
    assert "If the stack's outputs differ from the plan, make a new plan: `lakewright preview --save-plan FILE`" in (
        other.stdout + other.stderr
    )
    assert "Traceback" not in other.stdout + other.stderr
