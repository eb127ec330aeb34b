"""The embedded engine runs small programs as the Pulumi CLI does, see recordings.py."""

from __future__ import annotations

import functools
import os
import subprocess
from pathlib import Path

import pytest
from recordings import FOLDER, SCENARIOS, Recording, create_stack, find_recording_file, play, read_recording, write

RECORDING = os.environ.get("LAKEWRIGHT_RECORD", "") not in ("", "0")


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_engine_does_what_the_cli_did(name: str, tmp_path: Path) -> None:
    compare(name, tmp_path, read_recording(name), cli=False)


@pytest.mark.pulumi_cli
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_cli_does_what_was_recorded(name: str, tmp_path: Path) -> None:
    since = SCENARIOS[name].since_cli
    if RECORDING:
        record(name, tmp_path)
    elif is_older(read_cli_version(), since):
        pytest.skip(f"needs the Pulumi CLI {since} or newer")
    else:
        compare(name, tmp_path, read_recording(name), cli=True)


@pytest.mark.parametrize(
    ("version", "since", "older"),
    [("3.259.0", "3.260", True), ("3.260.0", "3.260", False), ("3.99.1", "3.260", True), ("3.100.0", "", False)],
)
def test_versions_of_the_cli_compare_by_number(version: str, since: str, older: bool) -> None:  # noqa: FBT001
    assert is_older(version, since) is older


def test_every_recording_has_a_program() -> None:
    assert set(FOLDER.iterdir()) == {find_recording_file(name) for name in SCENARIOS}


def is_older(version: str, since: str) -> bool:
    def parse(text: str) -> tuple[int, ...]:
        return tuple(int(number) for number in text.split(".")[:2]) if text else ()

    return parse(version) < parse(since)


@functools.cache
def read_cli_version() -> str:
    """Return the version of the Pulumi CLI on the PATH, such as `3.260.0`."""
    printed = subprocess.run(["pulumi", "version"], capture_output=True, text=True, check=True).stdout
    return printed.strip().removeprefix("v").partition("-")[0]


def record(name: str, folder: Path) -> None:
    scenario = SCENARIOS[name]
    stack = create_stack(scenario, folder)
    write(name, [play(scenario, stack, number, cli=True)[0] for number in range(1, len(scenario.commands) + 1)])


def compare(name: str, folder: Path, recording: Recording, *, cli: bool) -> None:
    scenario = SCENARIOS[name]
    stack = create_stack(scenario, folder)
    assert [step["command"] for step in recording] == list(scenario.commands), "the program has changed: record again"
    for number, expected_effects in enumerate(recording, 1):
        effects, messages = play(scenario, stack, number, cli=cli)
        context = f"{name}, step {number}, {expected_effects['command']}; messages: {''.join(messages)}"
        for part, expected in expected_effects.items():
            assert effects[part] == expected, f"{part} of {context}"
