"""All that `make setup` and `make install` install is pinned by hash: packages, build back ends, uv itself."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).parents[2]
LOCKS = sorted(
    [
        *REPOSITORY.glob("requirements*.lock"),
        REPOSITORY / "infra" / "policy" / "requirements.lock",
        REPOSITORY / "tests" / "browser" / "requirements.lock",
    ]
)
PACKAGES = ("components", "engine", "sandbox", "spark")


def read_pins(lock: Path) -> dict[str, str]:
    """Return the versions in a lock; each must have a hash."""
    versions: dict[str, str] = {}
    for block in re.split(r"\n(?=[A-Za-z])", lock.read_text()):
        match = re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;]+)", block)
        assert match, block
        assert "--hash=sha256:" in block, block
        versions[match[1]] = match[2]
    return versions


@pytest.mark.parametrize("lock", LOCKS, ids=lambda lock: str(lock.relative_to(REPOSITORY)))
def test_every_locked_package_has_a_hash(lock: Path) -> None:
    assert read_pins(lock)
    assert "index" not in lock.read_text()


def test_build_back_ends_accept_the_locked_version() -> None:
    locked = read_pins(REPOSITORY / "requirements-build.lock")
    for package in PACKAGES:
        build = tomllib.loads((REPOSITORY / package / "pyproject.toml").read_text())["build-system"]
        (required,) = map(Requirement, build["requires"])
        assert locked[required.name] in required.specifier


def test_setup_checks_its_build_tools() -> None:
    script = (REPOSITORY / "scripts" / "setup.sh").read_text()
    (install,) = (line for line in script.splitlines() if " pip " in line)

    assert "--build-constraints requirements-build.lock" in install
    assert len(re.findall(r"^ *uv_pip (sync|install) --require-hashes", script, re.MULTILINE)) == 2


def test_users_install_a_part_of_the_repository() -> None:
    """All packages of commands and sandbox, in the same versions, and none that only demo and tests need."""
    installed, locked = (read_pins(REPOSITORY / f"requirements{part}.lock") for part in ("-user", ""))
    projects = [tomllib.loads((REPOSITORY / package / "pyproject.toml").read_text())["project"] for package in PACKAGES]
    workspace = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    required = {Requirement(line).name for project in projects for line in project["dependencies"]}

    assert installed.items() <= locked.items()
    assert {name for name in required if not name.startswith("lakewright")} <= installed.keys()
    assert not installed.keys() & ({"pyspark", "pandas"} | {Requirement(line).name for line in workspace})


@pytest.mark.long
def test_wrong_uv_is_refused(tmp_path: Path) -> None:
    """A wheel with the right name and version and other content, as a registry might serve it."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(REPOSITORY / "scripts" / "uv.sh", tmp_path / "scripts")
    shutil.copy(REPOSITORY / "requirements-uv.lock", tmp_path)
    version = read_pins(REPOSITORY / "requirements-uv.lock")["uv"]
    info = f"uv-{version}.dist-info"
    with zipfile.ZipFile(tmp_path / f"uv-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: uv\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
        wheel.writestr(f"uv-{version}.data/scripts/uv", "#!/bin/sh\necho evil\n")
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    env = os.environ | {"PATH": path, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path)}

    done = subprocess.run(
        [tmp_path / "scripts" / "uv.sh", "--version"], env=env, capture_output=True, text=True, check=False
    )

    assert done.returncode != 0
    assert "DO NOT MATCH THE HASHES" in done.stderr
    assert "evil" not in done.stdout
    assert f"uv {version} could not be installed" in done.stderr
    assert "PIP_INDEX_URL" in done.stderr
    assert (tmp_path / ".uv" / "bin" / "python").exists(), "a download that failed is no reason to remove it"


def test_installed_files_of_setup_are_not_committed() -> None:
    ignored = (REPOSITORY / ".gitignore").read_text().splitlines()

    assert {".venv/", ".uv/"} <= set(ignored)
