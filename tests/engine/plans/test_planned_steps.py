"""The steps of a kept plan are the steps that the update then does, over the recorded programs of the engine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recordings import SCENARIOS, create_stack, play, read_recording
from stackrunner import Stack

DEFAULT = ("aliases of a component are inherited", "a chain deleted before it is replaced")
"""Scenarios of every run: renames, components, and deletions before replacements. `make test-all` plays all."""
NOT_PLANNED = {
    "targets of a refresh": "its program removes a file whenever it runs, in a preview too",
    "hooks around creations and updates": "its program writes files whenever it runs, in a preview too",
    "hooks around replacements and deletions": "its program writes files whenever it runs, in a preview too",
}
PLAYED = [name for name in SCENARIOS if name not in NOT_PLANNED] if os.environ.get("LAKEWRIGHT_FULL") else DEFAULT


class PlannedStack(Stack):
    """A stack whose updates follow the kept plan of a preview, if the preview succeeds."""

    def run(self, *command: str, **options: object):
        if command[0] != "up" or "--expect-no-changes" in command:
            return super().run(*command, **options)  # type: ignore[arg-type]
        plan = self.folder / "plan.json"
        plan.unlink(missing_ok=True)
        super().run("preview", *command[1:], save_plan=plan, **options)  # type: ignore[arg-type]
        if not plan.exists():
            return super().run(*command, **options)  # type: ignore[arg-type]
        return super().run("up", plan=plan, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLAYED)
def test_planned_updates_do_what_the_cli_did(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    stack = create_stack(scenario, tmp_path)
    stack.__class__ = PlannedStack
    for number, expected_effects in enumerate(read_recording(name), 1):
        effects, messages = play(scenario, stack, number, cli=False)
        context = f"{name}, step {number}, {expected_effects['command']}; messages: {''.join(messages)}"
        for part, expected in expected_effects.items():
            assert effects[part] == expected, f"{part} of {context}"
