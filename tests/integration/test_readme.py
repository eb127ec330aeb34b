"""The README's commands work as written, on a fresh clone."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.skipif(not (REPOSITORY / ".git").exists(), reason="needs the repository's git history to clone"),
]


def commands(section: str) -> list[str]:
    """Return the commands of the console blocks in a section of the README, without their comments."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    _, _, following_text = text.partition(f"## {section}\n")
    blocks = re.findall(r"```console\n(.*?)```", following_text.partition("\n## ")[0], re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [re.sub(r"\s+#.*", "", line[2:]) for line in lines]


@pytest.mark.long
def test_commands_of_a_tenant_work_on_a_fresh_clone(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", REPOSITORY, clone], check=True)
    # `make install` would install the same packages into `.venv` once more.
    (clone / ".venv").symlink_to(sys.prefix)
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ} | {"HOME": str(tmp_path)}
    lines = [*commands("Installation"), *commands("Five daily commands")]
    lines.remove("make install")
    script = "set -euxo pipefail\n" + "\n".join(lines)
    try:
        completed = subprocess.run(
            ["bash", "-c", script], cwd=clone, env=environment, capture_output=True, text=True, check=False
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
    finally:
        subprocess.run(
            [Path(sys.prefix) / "bin" / "lakewright", "sandbox", "down"],
            cwd=clone,
            env=environment,
            check=True,
            capture_output=True,
        )
