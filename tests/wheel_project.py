"""Wheels of this repository, and a user's project that has nothing else of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).parents[1]
UV = REPOSITORY / "scripts" / "uv.sh"
PACKAGES = {
    "components": "lakewright",
    "engine": "lakewright_engine",
    "sandbox": "lakewright_sandbox",
    "spark": "lakewright_spark",
}
JOB = """\
from lakewright_spark import current

run = current()
uri = run.write("Numbers-1", run.spark.range(5))
print("rows:", run.read(uri).count())
"""


def build_wheels(folder: Path, repository: Path = REPOSITORY) -> dict[str, Path]:
    """Build the wheels of all packages, and return them by name."""
    for package in PACKAGES:
        options = ["--wheel", "--quiet", "--build-constraints", repository / "requirements-build.lock"]
        subprocess.run([UV, "build", *options, "--out-dir", folder, repository / package], check=True)
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


def install_beside_tests(wheels: Mapping[str, Path], environment: Path) -> None:
    """Make a virtual environment with the wheels, and with the packages of other projects that the tests use."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    command = [UV, "pip", "install", "--quiet", "--python", environment / "bin" / "python", "--no-deps", "--reinstall"]
    subprocess.run([*command, *wheels.values()], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (shared,) = Path(sys.prefix).glob("lib/python*/site-packages")
    (packages / "shared.pth").write_text(f"{shared}\n")


@dataclass
class UserProject:
    """A project in a folder of its own, whose commands come from a virtual environment."""

    folder: Path
    environment: Path
    settings: dict[str, str] = field(default_factory=dict[str, str])
    """Further environment variables."""
    started: float = field(default_factory=time.monotonic)
    """When its user began, as a reading of the monotonic clock."""

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a command in the project, and return its output. Fails the test with its text if it fails."""
        java = Path(shutil.which("java") or "java").parent
        environ = {"PATH": f"{self.environment / 'bin'}:{java}:/usr/bin:/bin", "HOME": os.environ["HOME"]}
        environ |= {"PULUMI_CONFIG_PASSPHRASE": "first-day"} | self.settings
        done = subprocess.run(
            command, cwd=folder or self.folder, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def declare_tenant(self, name: str = "acme") -> None:
        """Write and check the spec of a tenant, and create its stack."""
        options = ("--preset", "texera", "--deletion", "purge", "--computing-unit", "spark")
        self.run("lakewright", "new", name, "--owner", "data@acme.example", "--bucket", f"{name}-lake", *options)
        self.run("lakewright", "spec", "validate")
        self.run("lakewright", "stack", "init", name)

    def run_job(self, name: str = "acme") -> str:
        """Run a Spark job that writes and reads a result, and return its output."""
        (self.folder / "catalog.json").write_text(self.run("lakewright", "config", "--stack", name, "--format", "json"))
        (self.folder / "job.py").write_text(JOB)
        job = ("lakewright-spark", "run", "job.py", "--config", "catalog.json", "--workflow", "1", "--execution", "1")
        return self.run(*job, "--registry", f"sqlite:///{self.folder / 'registry.db'}")
