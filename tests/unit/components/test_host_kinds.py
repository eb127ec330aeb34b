"""Hosts of endpoints in every spelling that a resolver accepts."""

from __future__ import annotations

import pytest
from lakewright.names.host_kinds import HostKind, is_loopback, kind_of_host

METADATA = [
    "169.254.169.254",
    "169.254.170.2",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "168.63.129.16",
    "2822734096",
    "100.100.100.200",
    "[::ffff:169.254.169.254]",
    "::ffff:a9fe:a9fe",
    "::a9fe:a9fe",
    "64:ff9b::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "fd00:ec2::254",
    "FD00:0EC2:0:0:0:0:0:0254",
    "fe80::1",
    "metadata.google.internal",
    "metadata.google.internal.",
    "Metadata.Google.Internal",
    "metadata",
    "instance-data.ec2.internal",
    "169.254.169.254.nip.io",
    "store.169-254-169-254.sslip.io",
    "a9fea9fe.nip.io",
    "2852039166.nip.io",
    "0xa9fea9fe.nip.io",
    "store-169.254.169.254.nip.io",
    "--ffff-a9fe-a9fe.sslip.io",
    "fd00-ec2--254.sslip.io",
    "64:ff9b:1::a9fe:a9fe",
    "::ffff:0:a9fe:a9fe",
]
INTERNAL = [
    "localhost",
    "localhost.",
    "store.localhost",
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "minio",
    "minio.storage.svc",
    "minio.storage.svc.cluster.local",
    "minio.storage.svc.corp.example",
    "kubernetes.default",
    "127.0.0.1.nip.io",
    "store.127-0-0-1.sslip.io",
    "7f000001.nip.io",
    "2130706433.nip.io",
    "--1.sslip.io",
]


@pytest.mark.parametrize("host", METADATA)
def test_every_spelling_of_a_metadata_service(host: str) -> None:
    assert kind_of_host(host) is HostKind.METADATA


@pytest.mark.parametrize("host", INTERNAL)
def test_this_machine_and_its_cluster(host: str) -> None:
    assert kind_of_host(host) is HostKind.INTERNAL


@pytest.mark.parametrize(
    "host", ["10.1.2.3", "2001:db8::1", "52.218.0.1", "10.0.0.1.nip.io", "10-0-0-1.sslip.io", "nip.io"]
)
def test_other_addresses(host: str) -> None:
    assert kind_of_host(host) is HostKind.ADDRESS


@pytest.mark.parametrize(
    "host", ["eu.store.example", "acc.r2.cloudflarestorage.com", "s3.internal.example", "a9fe.store.example"]
)
def test_names_outside_the_cluster(host: str) -> None:
    assert kind_of_host(host) is HostKind.NAME


@pytest.mark.parametrize("host", ["vault.vault", "minio.tenant-b", "api.kube-system", "store.example", "a9fe.io."])
def test_two_labels_may_be_a_service_of_the_cluster(host: str) -> None:
    assert kind_of_host(host) is HostKind.SHORT_NAME


@pytest.mark.parametrize("host", ["localhost", "x.localhost", "127.0.0.2", "[::1]", "::ffff:127.0.0.1", "0x7f000001"])
def test_loopback_in_every_spelling(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "minio", "localhost.example", "lakekeeper.platform.svc"])
def test_hosts_that_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)
