"""Error messages of failed programs."""

from __future__ import annotations

import sys
from pathlib import Path

from stackrunner import Stack


def test_traceback_starts_in_the_program(tmp_path: Path) -> None:
    """The virtual environment is in the program's folder, as in this repository.

    Its frames are not part of the program.
    """
    stack = Stack(tmp_path, "def fail():\n    raise ValueError('no such luck')\nfail()\n")
    (stack.program_dir / ".venv").symlink_to(sys.prefix)
    (stack.program_dir / "Pulumi.yaml").write_text(
        "name: conf\nruntime: {name: python, options: {virtualenv: .venv}}\n"
    )

    outcome = stack.run("preview")

    [error] = [message for message in outcome.messages if "no such luck" in message]
    assert error.count('File "') == 2
    assert f'File "{stack.program_dir}/__main__.py", line 3' in error
