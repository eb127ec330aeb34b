"""A user's first day with the wheels alone: an empty folder, nothing cached, and every package from the registries."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.wheel_project import UV, UserProject

TARGET_SECONDS = 240
"""Time from an empty folder to the report on two quiet cores. It is printed: a busy machine fails no test."""


@pytest.fixture(scope="module")
def installer(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> list[str | Path]:
    """Return the command that installs packages with an empty cache, so that each is downloaded."""
    cache = tmp_path_factory.mktemp("cache")
    links = wheels["lakewright"].parent
    return [UV, "pip", "install", "--quiet", "--cache-dir", cache, "--find-links", links]


@pytest.fixture(scope="module")
def project(installer: list[str | Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[UserProject]:
    """Return a project that was made and set up as its README says, with a running sandbox.

    Its home folder is empty: jars of Iceberg are downloaded, too.
    """
    folder = tmp_path_factory.mktemp("first-day")
    (home := folder / "home").mkdir()
    first = UserProject(folder, folder / "init", {"HOME": str(home)})
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", first.environment], check=True)
    subprocess.run([*installer, "--python", first.environment / "bin" / "python", "lakewright"], check=True)
    first.run("lakewright", "init", "lake", "--cloud", "sandbox")

    project = UserProject(folder / "lake", folder / "lake" / ".venv", first.settings, first.started)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", project.environment], check=True)
    requirements = project.folder / "requirements.txt"
    subprocess.run([*installer, "--python", project.environment / "bin" / "python", "-r", requirements], check=True)
    project.run("lakewright", "sandbox", "up")
    yield project
    project.run("lakewright", "sandbox", "down", "--purge")


@pytest.mark.spark
@pytest.mark.timeout(1800)
def test_first_day_on_the_embedded_engine(project: UserProject, capsys: pytest.CaptureFixture[str]) -> None:
    project.declare_tenant()
    project.run("lakewright", "up", "acme", "--yes", "--engine", "embedded")
    assert "rows: 5" in project.run_job()
    assert "no drift" in project.run("lakewright", "drift", "acme")
    if " report " in project.run("lakewright", "--help"):
        project.run("lakewright", "report", "--out", "report")
        assert [*(project.folder / "report").glob("*.html")]
    seconds = time.monotonic() - project.started
    project.run("lakewright", "destroy", "acme", "--yes", "--engine", "embedded")

    with capsys.disabled():
        print(f"\nfrom an empty folder to the report: {seconds:.0f} s (target {TARGET_SECONDS} s)")


@pytest.mark.pulumi_cli
@pytest.mark.timeout(1800)
def test_first_day_on_the_pulumi_cli(project: UserProject, installer: list[str | Path]) -> None:
    """`pulumi up` itself. The sandbox's providers stand in for the plugins, which the CLI would download."""
    # The CLI asks pip for the packages of the program.
    subprocess.run([*installer, "--python", project.environment / "bin" / "python", "pip"], check=True)
    python = project.environment / "bin" / "python"
    providers = {
        name: subprocess.Popen([python, "-m", "lakewright_sandbox.providers", name], stdout=subprocess.PIPE, text=True)
        for name in ("aws", "kubernetes")
    }
    ports = {name: provider.stdout.readline().strip() for name, provider in providers.items() if provider.stdout}
    pulumi = Path(shutil.which("pulumi") or "pulumi").parent
    settings = project.settings | {
        "PATH": f"{project.environment / 'bin'}:{pulumi}:/usr/bin:/bin",
        "PULUMI_DEBUG_PROVIDERS": ",".join(f"{name}:{port}" for name, port in ports.items()),
        "PULUMI_BACKEND_URL": (project.folder / ".lakewright" / "state").as_uri(),
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    on_cli = UserProject(project.folder, project.environment, settings)
    try:
        on_cli.declare_tenant("globex")
        on_cli.run("pulumi", "up", "--stack", "globex", "--yes", "--non-interactive")
        on_cli.run("pulumi", "preview", "--stack", "globex", "--refresh", "--expect-no-changes", "--non-interactive")
        assert "no drift" in on_cli.run("lakewright", "drift", "globex")
        on_cli.run("pulumi", "destroy", "--stack", "globex", "--yes", "--non-interactive")
    finally:
        for provider in providers.values():
            provider.terminate()
