"""Emulators of Azure Storage and Google Cloud Storage, with servers that enforce credentials, and a Lakekeeper.

`make test-stores` installs Azurite and gcp-storage-emulator, and runs these tests.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.object_stores.azure_front import create_azure_front
from lakewright_sandbox.object_stores.azure_signatures import AzureAccount, authorize
from lakewright_sandbox.object_stores.google_front import GoogleFront
from lakewright_sandbox.runtime import processes
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from tests.authorities import Authority, make_authority, write_certificate
from tests.tenant_project import Tenant, create_project, new_name, tenant_spec

FOLDER = Path(__file__).parent
AZURITE = FOLDER / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
GOOGLE_EMULATOR = FOLDER / ".venv" / "bin" / "gcp-storage-emulator"
CONTAINER = "lake"
BUCKET = "acme-lake"


@dataclass(frozen=True)
class AzureStore:
    """An account with a container, behind a server that enforces SAS tokens."""

    endpoint: str
    tls_endpoint: str
    """The same server with TLS, which adlfs requires."""
    emulator: str
    """Address of Azurite itself."""
    account: AzureAccount

    def request(self, method: str, path: str, params: dict[str, str] | None = None) -> httpx.Response:
        """Send a request with the account's key to the emulator."""
        full_path = f"/{self.account.name}/{path}"
        headers = authorize(self.account, method, full_path, params or {}, {"content-length": "0"})
        return httpx.request(method, f"{self.emulator}{full_path}", params=params, headers=headers)

    def list_names(self, prefix: str = "") -> list[str]:
        """Return the names of blobs of the container."""
        text = self.request("GET", CONTAINER, {"restype": "container", "comp": "list", "prefix": prefix}).text
        return [part.partition("</Name>")[0] for part in text.split("<Name>")[1:]]

    @property
    def client_options(self) -> dict[str, str]:
        """Return the properties that lead PyIceberg to the emulator instead of Azure."""
        return {"adls.account-host": f"{self.tls_endpoint.removeprefix('https://')}/{self.account.name}"}

    @property
    def spark_options(self) -> dict[str, str]:
        """Return the options of a catalog that lead Spark to the emulator instead of Azure."""
        host = f"{self.account.name}.dfs.core.windows.net"
        return {f"adls.connection-string.{host}": f"{self.endpoint}/{self.account.name}"}


@dataclass(frozen=True)
class GoogleStore:
    """A bucket behind a server that enforces tokens, and the key of a service account."""

    endpoint: str
    emulator: str
    key: dict[str, str]

    def list_names(self, prefix: str = "") -> list[str]:
        """Return the names of the bucket's objects."""
        page = httpx.get(f"{self.emulator}/storage/v1/b/{BUCKET}/o", params={"prefix": prefix}).json()
        return [item["name"] for item in page.get("items") or []]

    @property
    def client_options(self) -> dict[str, str]:
        """Return the property that leads PyIceberg to the emulator instead of Google."""
        return {"gcs.service.host": self.endpoint}

    @property
    def spark_options(self) -> dict[str, str]:
        """Return the option of a catalog that leads Spark to the emulator instead of Google."""
        return self.client_options


@contextmanager
def run_process(command: list[str], url: str, **environ: str) -> Iterator[None]:
    """Run a server while the block runs."""
    process = subprocess.Popen(
        command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until_up(url)
        yield
    finally:
        process.kill()
        process.wait()


@retry(retry=retry_if_exception_type(httpx.HTTPError), wait=wait_fixed(0.1), stop=stop_after_delay(30), reraise=True)
def wait_until_up(url: str) -> None:
    httpx.get(url, timeout=1)


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The authority of the emulators' certificates."""
    return make_authority("the emulators' authority")


@pytest.fixture(scope="session")
def azure(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AzureStore]:
    """An Azurite with a container."""
    if not AZURITE.is_file():
        pytest.fail("Azurite is not installed: run `make test-stores`")
    account = AzureAccount("acmelake", base64.b64encode(secrets.token_bytes(48)).decode())
    port = processes.free_port()
    emulator = f"http://127.0.0.1:{port}"
    command = ["node", str(AZURITE), "--inMemoryPersistence", "--blobPort", str(port), "--skipApiVersionCheck"]
    folder = write_certificate(authority, tmp_path_factory.mktemp("azure") / "certificates")
    with (
        run_process(command, emulator, AZURITE_ACCOUNTS=f"{account.name}:{account.key}"),
        serve(create_azure_front(emulator, account)) as endpoint,
        serve(
            create_azure_front(emulator, account), certificate=folder / "public.crt", key=folder / "private.key"
        ) as tls_endpoint,
    ):
        store = AzureStore(endpoint, tls_endpoint, emulator, account)
        store.request("PUT", CONTAINER, {"restype": "container"}).raise_for_status()
        yield store


@pytest.fixture(scope="session")
def google() -> Iterator[GoogleStore]:
    """An emulator of Google Cloud Storage with a bucket."""
    if not GOOGLE_EMULATOR.is_file():
        pytest.fail("gcp-storage-emulator is not installed: run `make test-stores`")
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    email = "lakekeeper@acme.iam.gserviceaccount.com"
    port = processes.free_port()
    emulator = f"http://127.0.0.1:{port}"
    command = [str(GOOGLE_EMULATOR), "start", "--host=127.0.0.1", f"--port={port}", "--in-memory"]
    with (
        run_process([*command, f"--default-bucket={BUCKET}"], emulator),
        serve(GoogleFront(emulator, {email: public.decode()}).create_app()) as endpoint,
    ):
        key = {
            "type": "service_account",
            "project_id": "acme",
            "private_key_id": "1",
            "private_key": pem,
            "client_email": email,
            "client_id": "1",
            "auth_uri": "https://accounts.google.com/o/oauth2/auth",
            "token_uri": f"{endpoint}/token",
            "auth_provider_x509_cert_url": "https://www.googleapis.com/oauth2/v1/certs",
            "client_x509_cert_url": "https://www.googleapis.com/robot/v1/metadata/x509/lakekeeper",
            "universe_domain": "googleapis.com",
        }
        yield GoogleStore(endpoint, emulator, key)


@pytest.fixture(scope="session")
def lakekeeper(tmp_path_factory: pytest.TempPathFactory, azure: AzureStore, google: GoogleStore) -> Iterator[str]:
    """A Lakekeeper that validates storage, as a real server does."""
    database = tmp_path_factory.mktemp("lakekeeper") / "db"
    settings = Settings(database=f"sqlite:///{database}", adls_endpoint=azure.endpoint, gcs_endpoint=google.endpoint)
    with serve(create_app(settings)) as endpoint:
        yield endpoint


@dataclass
class CloudTenant(Tenant):
    """A tenant on an emulator."""

    client_options: dict[str, str] = field(default_factory=dict)
    spark_options: dict[str, str] = field(default_factory=dict)
    trusted: Path = Path()
    """File with the authority of the emulator's certificate."""

    def run_client(self) -> dict[str, Any]:
        """Write and read a table in PyIceberg, with the generated configuration and the address of the emulator."""
        properties = self.catalog_config().pyiceberg("executions") | self.client_options
        done = subprocess.run(
            [str(FOLDER / ".venv" / "bin" / "python"), str(FOLDER / "client.py")],
            input=json.dumps(properties),
            env={**os.environ, "SSL_CERT_FILE": str(self.trusted)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def run_spark(self) -> dict[str, Any]:
        """Write, change and read a table in Spark, with the generated configuration and the address of the emulator."""
        settings = {"config": json.loads(self.catalog_config().to_json()), "options": self.spark_options}
        done = subprocess.run(
            [sys.executable, str(FOLDER / "spark_client.py")],
            input=json.dumps(settings),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


MakeCloudTenant = Callable[..., CloudTenant]


@pytest.fixture
def make_tenant(
    tmp_path: Path, lakekeeper: str, azure: AzureStore, google: GoogleStore, authority: Authority
) -> MakeCloudTenant:
    """Make a tenant with backend `adls` or `gcs`."""

    def make(backend: str, **changes: Any) -> CloudTenant:
        name = new_name()
        folder = tmp_path / name
        environment = {
            "lakekeeper": {"endpoint": lakekeeper, "bootstrap": True},
            "tenant_specs": {"references": ["env:"]},
        }
        create_project(folder, environment)
        storages: dict[str, dict[str, Any]] = {
            "adls": {
                "bucket": CONTAINER,
                "account": azure.account.name,
                "credential": {"account_key": "env:TEST_ACCOUNT_KEY"},
            },
            "gcs": {"bucket": BUCKET, "credential": {"service_account_key": "env:TEST_SERVICE_ACCOUNT_KEY"}},
        }
        spec = tenant_spec(name, {"backend": backend} | storages[backend]) | changes
        secret_values = {
            "TEST_ACCOUNT_KEY": azure.account.key,
            "TEST_SERVICE_ACCOUNT_KEY": json.dumps(google.key),
        }
        trusted = folder / "authority.pem"
        trusted.write_text(authority.pem)
        store = azure if backend == "adls" else google
        tenant = CloudTenant(
            folder,
            cast(Any, None),
            spec,
            environ=secret_values,
            client_options=store.client_options,
            spark_options=store.spark_options,
            trusted=trusted,
        )
        tenant.write()
        tenant.output("stack", "init")
        return tenant

    return make
