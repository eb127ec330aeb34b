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
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.wheel_project import PACKAGES, REPOSITORY, UserProject, build_wheels, install_beside_tests


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))


@pytest.fixture(scope="module")
def installation(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a virtual environment with the wheels. `make test-wheels` also installs what they need."""
    environment = tmp_path_factory.mktemp("installation") / ".venv"
    install_beside_tests(wheels, environment)
    yield environment
    shutil.rmtree(environment)


def test_wheels_have_metadata_types_and_an_sbom(wheels: dict[str, Path]) -> None:
    assert sorted(wheels) == sorted(PACKAGES.values())
    for name, wheel in wheels.items():
        archive = zipfile.ZipFile(wheel)
        info = f"{name}-{version(name)}.dist-info"
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


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_first_day_from_an_empty_folder(installation: Path, tmp_path: Path) -> None:
    project = UserProject(tmp_path / "lake", installation)
    project.run("lakewright", "init", str(project.folder), "--cloud", "sandbox", folder=tmp_path)
    (project.folder / ".venv").symlink_to(installation)
    project.run("lakewright", "sandbox", "up")
    try:
        project.declare_tenant()
        project.run("lakewright", "up", "acme", "--yes")
        assert "rows: 5" in project.run_job()
        assert "no drift" in project.run("lakewright", "drift", "acme")
        project.run("lakewright", "destroy", "acme", "--yes")
    finally:
        project.run("lakewright", "sandbox", "down", "--purge")


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
