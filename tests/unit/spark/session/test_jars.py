"""Jars are compared with the SHA-256 in the repository before Spark loads them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.warehouse import CatalogWarehouse, StorageKind
from lakewright_spark.errors import JarsChangedError
from lakewright_spark.session import jars, own_jar, storage_jars

PACKAGE = "org.example:tool:1.0"
CONTENT = b"the jar"


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a jar with a known digest."""
    monkeypatch.setenv("LAKEWRIGHT_IVY", str(tmp_path))
    monkeypatch.setattr(jars, "SHA256", {PACKAGE: hashlib.sha256(CONTENT).hexdigest()})
    (path,) = jars.jar_paths([PACKAGE])
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return path


def test_present_jar_is_used_by_path(jar: Path) -> None:
    assert jars.spark_properties([PACKAGE]) == {"spark.jars": str(jar)}
    assert jars.driver_properties([PACKAGE]) == {"spark.driver.extraClassPath": str(jar)}


def test_jar_with_wrong_digest_is_refused(jar: Path) -> None:
    jar.write_bytes(b"another jar")

    with pytest.raises(JarsChangedError, match=r"expected SHA-256 \w{64} of .*tool-1.0.jar, found \w{64}. Delete"):
        jars.spark_properties([PACKAGE])


def test_changed_jar_is_noticed(jar: Path) -> None:
    jars.fetch([PACKAGE])
    jar.write_bytes(b"another jar")

    with pytest.raises(JarsChangedError):
        jars.fetch([PACKAGE])


def test_jar_is_read_once(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jars.fetch([PACKAGE])
    monkeypatch.setattr(hashlib, "file_digest", lambda *_: pytest.fail("it was read again"))

    assert jars.fetch([PACKAGE]) == [jar]


def test_jar_without_a_digest_is_refused(jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "SHA256", {})

    with pytest.raises(JarsChangedError, match="of a jar that is known"):
        jars.fetch([PACKAGE])


def make_config(*storages: StorageKind) -> CatalogConfig:
    warehouses = [CatalogWarehouse(name=storage, storage=storage) for storage in storages]
    return CatalogConfig(kind="rest", tenant="acme", uri="https://catalog", warehouses=warehouses)


def test_session_has_the_jars_of_its_storage_services_only() -> None:
    assert jars.list_packages(make_config("s3")) == [*jars.PACKAGES]
    assert jars.list_packages(make_config("s3", "adls")) == [*jars.PACKAGES, *storage_jars.PACKAGES["adls"]]


@pytest.mark.parametrize("name", ["spark.jars", "spark.driver.extraClassPath", "spark.jars.packages"])
def test_bundle_of_the_caller_replaces_the_jars_of_a_service(name: str) -> None:
    properties = {name: "/opt/iceberg-azure-bundle-1.12.0.jar"}

    packages = jars.list_packages(make_config("adls", "gcs"), {}, properties)

    assert packages == [*jars.PACKAGES, *storage_jars.PACKAGES["gcs"]]


def test_every_jar_that_spark_loads_has_a_digest() -> None:
    sdks = {package for packages in storage_jars.PACKAGES.values() for package in packages}

    assert set(jars.SHA256) == {*jars.PACKAGES, *jars.DRIVERS.values(), *sdks, own_jar.COMPILER}
