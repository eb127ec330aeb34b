"""MinIO with TLS, a bucket, and an access key that can be rotated."""

from __future__ import annotations

from pathlib import Path

import boto3

from tests.authorities import Authority, write_certificate
from tests.platform.machines import Machine, is_responding, start_machine
from tests.platform.network import PodNetwork

STORE_HOST = "s3.platform.example"
ENDPOINT = f"https://{STORE_HOST}:9000"
BUCKET = "lakehouse"


class Store:
    """MinIO. Its access key is in two files, which references of specs name."""

    def __init__(self, folder: Path, network: PodNetwork, authority: Authority, trusted: Path, program: Path) -> None:
        """Start MinIO and make the bucket."""
        self._folder, self._trusted, self._program, self._authority = folder, trusted, program, authority
        self._certificates = write_certificate(authority, folder / "store-tls", STORE_HOST)
        self._address = network.add_host(STORE_HOST)
        self.keys = folder / "store-keys"
        self.keys.mkdir()
        self._number = 0
        self._machine = self._start()
        boto3.client(
            "s3",
            endpoint_url=ENDPOINT,
            verify=str(trusted),
            region_name="us-east-1",
            aws_access_key_id=(self.keys / "id").read_text(),
            aws_secret_access_key=(self.keys / "secret").read_text(),
        ).create_bucket(Bucket=BUCKET)

    @property
    def storage(self) -> dict[str, object]:
        """The store as a spec of a tenant has it."""
        credential = {"access_key_id": f"file:{self.keys}/id", "secret_access_key": f"file:{self.keys}/secret"}
        bucket = {"backend": "s3", "store": "minio", "endpoint": ENDPOINT, "region": "us-east-1", "bucket": BUCKET}
        return {**bucket, "ca_certificates": self._authority.pem, "credential": credential}

    def rotate(self) -> None:
        """Give the store another access key. The former key ends."""
        self.stop()
        self._machine = self._start()

    def stop(self) -> None:
        """End MinIO."""
        self._machine.stop()

    def _start(self) -> Machine:
        self._number += 1
        pair = {"id": f"access-key-{self._number}", "secret": f"secret-access-key-{self._number}"}
        for name, value in pair.items():
            (self.keys / name).write_text(value)
        command = [str(self._program), "server", "--address", f"{self._address}:9000"]
        command += ["--certs-dir", str(self._certificates), str(self._folder / "objects")]
        environ = {"MINIO_ROOT_USER": pair["id"], "MINIO_ROOT_PASSWORD": pair["secret"]}
        machine = start_machine("minio", command, self._folder, environ)
        machine.wait_until(lambda: is_responding(f"{ENDPOINT}/minio/health/live", self._trusted))
        return machine
