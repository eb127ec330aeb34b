"""The wheels alone, in an empty folder: a project, a sandbox, a tenant, a Spark job, drift."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[3]
UV = REPOSITORY / "scripts" / "uv.sh"
FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
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


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def installation(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a virtual environment with the wheels.

    `make test-all` installs everything that they need. Otherwise the environment uses the packages that the tests use.
    """
    environment = tmp_path_factory.mktemp("installation") / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    sources = [str(wheel) for wheel in wheels.values()]
    command = [UV, "pip", "install", "--quiet", "--python", environment / "bin" / "python"]
    if FULL:
        index = ["--find-links", str(wheels["lakewright"].parent)]
        subprocess.run([*command, *index, "lakewright[sandbox,spark]"], check=True)
    else:
        subprocess.run([*command, "--no-deps", *sources], check=True)
        (packages,) = environment.glob("lib/python*/site-packages")
        (shared,) = Path(sys.prefix).glob("lib/python*/site-packages")
        (packages / "shared.pth").write_text(f"{shared}\n")
    yield environment
    shutil.rmtree(environment)


def test_wheels_have_metadata_types_and_an_sbom(wheels: dict[str, Path]) -> None:
    assert sorted(wheels) == sorted(PACKAGES.values())
    for name, wheel in wheels.items():
        archive = zipfile.ZipFile(wheel)
        info = f"{name}-0.1.0.dist-info"
        metadata = message_from_string(archive.read(f"{info}/METADATA").decode())
        assert metadata["License-Expression"] == "Apache-2.0"
        assert metadata["Author-email"]
        assert {entry.partition(",")[0] for entry in metadata.get_all("Project-URL") or []} >= {"Source", "Changelog"}
        assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])
        assert "# lakewright" in str(metadata.get_payload())
        assert {f"{info}/licenses/LICENSE", f"{name}/py.typed"} <= {*archive.namelist()}
        bill = json.loads(archive.read(f"{info}/sboms/sbom.cdx.json"))
        required = {line.split(">")[0].split("=")[0].split("[")[0] for line in metadata.get_all("Requires-Dist") or []}
        components = {component["name"] for component in bill["components"]}
        assert {"pydantic", "pulumi", "fastapi"} & required <= components


def test_package_data_is_in_the_wheel(wheels: dict[str, Path]) -> None:
    names = set(zipfile.ZipFile(wheels["lakewright"]).namelist())

    assert {
        f"lakewright/packaged_files/{path}"
        for path in (
            "ci/github/preview.yml",
            "ci/gitlab/.gitlab-ci.yml",
            "images/Containerfile",
            "platform/Pulumi.yaml",
            "policy/PulumiPolicy.yaml",
            "schema/tenant.schema.json",
        )
    } <= names
    assert {"lakewright/new_project/template/.gitignore", "lakewright/new_project/template/Pulumi.yaml"} <= names
    assert not any(".venv" in name or "__pycache__" in name for name in names)


def test_wheels_are_reproducible(wheels: dict[str, Path], tmp_path: Path) -> None:
    """A copy of the repository in another folder, with other times of its files, makes the same bytes."""
    copy = tmp_path / "copy"
    files = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for path in filter(None, files.split("\0")):
        if (REPOSITORY / path).exists():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / path, copy / path, follow_symlinks=False)
    rebuilt_wheels = build_wheels(tmp_path / "wheels", copy)

    assert {name: wheel.read_bytes() for name, wheel in rebuilt_wheels.items()} == {
        name: wheel.read_bytes() for name, wheel in wheels.items()
    }


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_first_day_from_an_empty_folder(installation: Path, tmp_path: Path) -> None:
    java = Path(shutil.which("java") or "java").parent
    settings = {"PATH": f"{installation / 'bin'}:{java}:/usr/bin:/bin", "HOME": os.environ["HOME"]}
    settings["PULUMI_CONFIG_PASSPHRASE"] = "first-day"
    project = tmp_path / "lake"

    def run(*command: str, folder: Path = project) -> str:
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    run("lakewright", "init", str(project), "--cloud", "sandbox", folder=tmp_path)
    (project / ".venv").symlink_to(installation)
    run("lakewright", "sandbox", "up")
    try:
        options = ("--preset", "texera", "--deletion", "purge", "--computing-unit", "spark")
        run("lakewright", "new", "acme", "--owner", "data@acme.example", *options)
        run("lakewright", "spec", "validate")
        run("lakewright", "stack", "init", "acme")
        run("lakewright", "up", "acme", "--yes")
        (project / "catalog.json").write_text(run("lakewright", "config", "--stack", "acme", "--format", "json"))
        (project / "job.py").write_text(JOB)
        job = ("lakewright-spark", "run", "job.py", "--config", "catalog.json", "--workflow", "1", "--execution", "1")
        assert "rows: 5" in run(*job, "--registry", f"sqlite:///{project / 'registry.db'}")
        assert "no drift" in run("lakewright", "drift", "acme")
        run("lakewright", "destroy", "acme", "--yes")
    finally:
        run("lakewright", "sandbox", "down", "--purge")


def test_missing_extra_is_named(tmp_path: Path) -> None:
    """An environment without pulumi-aws, in which a stack has a bucket on AWS."""
    (tmp_path / "pulumi_aws.py").write_text("raise ModuleNotFoundError('none', name='pulumi_aws')")
    program = """
from lakewright.environment.extras import explain_missing_package
try:
    from lakewright.aws.bucket import TenantBucket
except ModuleNotFoundError as error:
    print(explain_missing_package(error))
"""
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)

    assert "pip install 'lakewright[aws]'" in done.stdout
