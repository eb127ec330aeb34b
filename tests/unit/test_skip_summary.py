"""The last lines of a test run count what was skipped, by reason."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TESTS_OF_THE_CLI = "tests/integration/test_cli_pulumi.py"


def test_tests_without_the_cli_are_counted_by_reason() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", TESTS_OF_THE_CLI]
    env = {**os.environ, "PATH": "/usr/bin:/bin"}
    env.pop("LAKEWRIGHT_REQUIRE_PULUMI", None)

    done = subprocess.run(command, cwd=REPOSITORY, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
    _, _, summary = done.stdout.partition("skipped, by reason")
    count = int(done.stdout.splitlines()[-1].split()[0])
    assert f"\n{count} needs the Pulumi CLI, which is not on the PATH\n" in summary
