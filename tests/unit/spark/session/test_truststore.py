"""A Java truststore from a PEM file, with Java's authorities and the custom ones."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.session.truststore import PASSWORD, create_truststore, find_java_home

sys.path.insert(0, str(Path(__file__).parents[3] / "spark"))
from certificates import create_certificates

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def list_store(store: Path, *options: str) -> str:
    """Return what keytool prints of a store."""
    keytool = str(find_java_home() / "bin/keytool")
    command = [keytool, "-list", "-keystore", str(store), "-storepass", PASSWORD, *options]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_truststore_has_java_and_custom_authorities(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    parts = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        parts.append(create_certificates(tmp_path / name)[0].read_text())
    bundle.write_text("\n".join(parts))
    store = create_truststore(bundle)
    listing = list_store(store)
    assert "lakewright-0" in listing
    assert "lakewright-1" in listing
    assert len(listing.splitlines()) > 20
    modified_at = store.stat().st_mtime_ns
    assert create_truststore(bundle) == store
    assert store.stat().st_mtime_ns == modified_at


def test_java_has_its_own_authorities_once(tmp_path: Path) -> None:
    """A bundle of a system begins with the authorities that Java has, too."""
    authorities = list_store(find_java_home() / "lib/security/cacerts", "-rfc")
    bundle = tmp_path / "bundle.pem"
    bundle.write_text(authorities + create_certificates(tmp_path)[0].read_text())
    count = authorities.count("BEGIN CERTIFICATE")
    assert count > 50

    listing = list_store(create_truststore(bundle))

    assert listing.count("trustedCertEntry") == count + 1
    assert f"lakewright-{count}," in listing


def test_comments_of_a_pem_file_have_any_characters(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("# Prüfstelle\n" + create_certificates(tmp_path)[0].read_text(), encoding="utf-8")

    assert "lakewright-0" in list_store(create_truststore(bundle))


def test_invalid_pem_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigMissingError, match="expected a PEM file that can be read"):
        create_truststore(tmp_path / "missing.pem")
    (tmp_path / "empty.pem").write_text("nothing")
    with pytest.raises(ConfigMissingError, match="with certificates, found none"):
        create_truststore(tmp_path / "empty.pem")
    (tmp_path / "broken.pem").write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    with pytest.raises(ConfigMissingError, match="keytool does not take lakewright-0"):
        create_truststore(tmp_path / "broken.pem")
