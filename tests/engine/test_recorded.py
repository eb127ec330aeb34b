"""The embedded engine runs small programs as the Pulumi CLI does, see recordings.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from recordings import FOLDER, SCENARIOS, Recording, file_of, play, recording, stack_of, write

RECORDING = os.environ.get("LAKEWRIGHT_RECORD", "") not in ("", "0")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_engine_does_what_the_cli_did(name: str, tmp_path: Path) -> None:
    compare(name, tmp_path, recording(name), cli=False)


@pytest.mark.pulumi_cli
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cli_does_what_was_recorded(name: str, tmp_path: Path) -> None:
    if RECORDING:
        record(name, tmp_path)
    else:
        compare(name, tmp_path, recording(name), cli=True)


def test_every_recording_has_a_program() -> None:
    assert set(FOLDER.iterdir()) == {file_of(name) for name in SCENARIOS}


def record(name: str, folder: Path) -> None:
    scenario = SCENARIOS[name]
    stack = stack_of(scenario, folder)
    write(name, [play(scenario, stack, number, cli=True)[0] for number in range(1, len(scenario.commands) + 1)])


def compare(name: str, folder: Path, recorded: Recording, *, cli: bool) -> None:
    scenario = SCENARIOS[name]
    stack = stack_of(scenario, folder)
    assert [step["command"] for step in recorded] == list(scenario.commands), "the program has changed: record it anew"
    for number, wanted in enumerate(recorded, 1):
        effects, messages = play(scenario, stack, number, cli=cli)
        where = f"{name}, step {number}, {wanted['command']}; messages: {''.join(messages)}"
        for part, expected in wanted.items():
            assert effects[part] == expected, f"{part} of {where}"
