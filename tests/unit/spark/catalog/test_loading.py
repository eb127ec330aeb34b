"""Configurations that are loaded together: their certificate authorities."""

from __future__ import annotations

import os
import ssl
import stat
import subprocess
import sys
from pathlib import Path

import certifi
import pytest
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.loading import load_config_pair
from lakewright_spark.errors import ConfigMissingError

from tests.authorities import make_authority

VARIABLES = ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE")


@pytest.fixture(autouse=True)
def _variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "")


def write_config(folder: Path, name: str, bundle: Path | None) -> Path:
    """Write a configuration, and a bundle with an authority of this name."""
    if bundle is not None:
        bundle.write_text(make_authority(name).pem)
    config = CatalogConfig(
        tenant="acme",
        uri="https://lakekeeper.example/catalog",
        project_id="acme",
        ca_bundle=str(bundle) if bundle else None,
        warehouses=[CatalogWarehouse(name="executions", id="1")],
    )
    file = folder / f"{name}.json"
    file.write_text(config.to_json())
    return file


def list_authorities(bundle: str) -> set[str]:
    """Return the common names of the authorities in a file."""
    certificates = ssl.create_default_context(cafile=bundle).get_ca_certs()
    return {value for entry in certificates for part in entry["subject"] for key, value in part if key == "commonName"}


def test_authorities_of_both_configurations_are_trusted(tmp_path: Path) -> None:
    source = write_config(tmp_path, "source", tmp_path / "source.pem")
    target = write_config(tmp_path, "target", tmp_path / "target.pem")

    load_config_pair(source, target)

    (bundle,) = {os.environ[name] for name in VARIABLES}
    assert list_authorities(bundle) == {"source", "target"}
    assert stat.S_IMODE(Path(bundle).stat().st_mode) == 0o600


@pytest.mark.parametrize("side", ["source", "target"])
def test_public_authorities_of_the_side_without_a_bundle(tmp_path: Path, side: str) -> None:
    bundles = {side: tmp_path / "ca.pem"}
    source, target = (write_config(tmp_path, name, bundles.get(name)) for name in ("source", "target"))

    load_config_pair(source, target)

    assert list_authorities(os.environ["REQUESTS_CA_BUNDLE"]) == {side, *list_authorities(certifi.where())}


def test_side_without_a_bundle_keeps_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "company.pem").write_text(make_authority("company").pem)
    for name in VARIABLES:
        monkeypatch.setenv(name, str(tmp_path / "company.pem"))

    load_config_pair(write_config(tmp_path, "source", tmp_path / "source.pem"), write_config(tmp_path, "target", None))

    assert list_authorities(os.environ["AWS_CA_BUNDLE"]) == {"source", "company"}


def test_equal_bundles_need_no_file(tmp_path: Path) -> None:
    bundle = tmp_path / "ca.pem"

    load_config_pair(write_config(tmp_path, "source", bundle), write_config(tmp_path, "target", bundle))

    assert {os.environ[name] for name in VARIABLES} == {str(bundle)}


def test_file_of_both_bundles_is_removed_at_the_end(tmp_path: Path) -> None:
    files = [write_config(tmp_path, name, tmp_path / f"{name}.pem") for name in ("source", "target")]
    program = (
        "import os, pathlib, sys\n"
        "from lakewright_spark.catalog.loading import load_config_pair\n"
        "load_config_pair(*map(pathlib.Path, sys.argv[1:]))\n"
        "print(os.path.exists(os.environ['AWS_CA_BUNDLE']), os.environ['AWS_CA_BUNDLE'])\n"
    )

    run = subprocess.run([sys.executable, "-c", program, *files], capture_output=True, text=True, check=True)

    existed, bundle = run.stdout.split()
    assert existed == "True"
    assert not Path(bundle).exists()


def test_bundle_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    source = write_config(tmp_path, "source", tmp_path / "source.pem")
    (tmp_path / "source.pem").unlink()

    with pytest.raises(ConfigMissingError, match=r"source\.pem: expected a readable PEM file .*FileNotFoundError"):
        load_config_pair(source, write_config(tmp_path, "target", None))
