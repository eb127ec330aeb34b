"""Certificate authorities of a platform in pods."""

from __future__ import annotations

import base64
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from lakewright.kubernetes import trust
from lakewright.kubernetes.settings import CaBundle, ClusterSettings
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse

KEYTOOL = shutil.which("keytool")


def authority(name: str) -> bytes:
    """Return a certificate authority as PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
    builder = builder.serial_number(7).not_valid_before(now).not_valid_after(now + timedelta(days=1))
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    file = tmp_path / "ca.pem"
    file.write_bytes(authority("first") + authority("second"))
    return file


@pytest.mark.skipif(KEYTOOL is None, reason="Java's keytool is not on the PATH")
def test_java_reads_the_truststore(bundle: Path, tmp_path: Path) -> None:
    store = tmp_path / "truststore.p12"
    store.write_bytes(trust.encode_truststore(bundle.read_bytes()))

    command = [str(KEYTOOL), "-list", "-keystore", str(store), "-storepass", "changeit", "-storetype", "PKCS12"]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout

    assert "contains 2 entries" in listing
    assert listing.count("trustedCertEntry") == 2


def test_truststore_is_the_same_in_each_run(bundle: Path) -> None:
    """A random part would change the ConfigMap in each `up` and restart all pods."""
    assert trust.encode_truststore(bundle.read_bytes()) == trust.encode_truststore(bundle.read_bytes())


def test_files_are_mounted_where_the_catalog_names_them(bundle: Path) -> None:
    cluster = ClusterSettings(ca_bundle=CaBundle(file=bundle))
    catalog = CatalogConfig(
        tenant="acme",
        uri="https://lakekeeper.example/catalog",
        project_id="acme",
        ca_bundle="/etc/ssl/certs/platform.pem",
        truststore=trust.TRUSTSTORE,
        warehouses=[CatalogWarehouse(name="executions", id="0198")],
    )

    mounted = {mount["mountPath"]: mount["subPath"] for mount in trust.mounts(catalog, cluster)}
    content = trust.config_map_content(cluster)

    assert content
    assert mounted == {"/etc/ssl/certs/platform.pem": "ca.pem", trust.TRUSTSTORE: "truststore.p12"}
    assert content["data"]["ca.pem"].encode() == bundle.read_bytes()
    assert base64.b64decode(content["binaryData"]["truststore.p12"]) == trust.encode_truststore(bundle.read_bytes())
    assert trust.volumes(cluster) == [{"name": "trust", "configMap": {"name": "trusted-authorities"}}]


def test_new_authorities_restart_pods(bundle: Path) -> None:
    cluster = ClusterSettings(ca_bundle=CaBundle(file=bundle))
    before = trust.pod_annotations(cluster)

    bundle.write_bytes(authority("third"))

    assert before != trust.pod_annotations(cluster)


@pytest.mark.parametrize("text", ["", "-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"])
def test_file_without_certificates_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "ca.pem"
    file.write_text(text)

    assert "expected a PEM file with certificates" in str(trust.find_mistake(CaBundle(file=file)))
    assert "FileNotFoundError" in str(trust.find_mistake(CaBundle(file=tmp_path / "missing.pem")))
