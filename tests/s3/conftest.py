"""Tenants on a real S3 store: a sandbox whose store is MinIO, with STS. `make test-s3` runs these tests."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import certifi
import pytest
from botocore.config import Config
from lakewright_sandbox import lifecycle
from lakewright_sandbox.runtime import processes
from lakewright_sandbox.runtime.state import Layout, Sandbox, StoreState
from lakewright_sandbox.store.access import load_keys
from lakewright_sandbox.store.service import minio_program, start_minio

from tests.authorities import Authority, make_authority, write_certificate
from tests.tenant_project import Tenant, create_project, list_changes, new_name, tenant_spec

STORE = os.environ.get("TEST_S3", "minio")
"""`minio`, or the address of a running store, as for `lakewright sandbox up --s3`."""


@dataclass(frozen=True)
class TlsStore:
    """A store with TLS, whose certificate is of an authority that no machine knows."""

    endpoint: str
    authority: str
    """The authority's certificate, in PEM."""
    bundle: Path
    """File with this authority and those that everybody trusts."""


@pytest.fixture(scope="session")
def authority() -> Authority:
    """The authority of the store with TLS."""
    return make_authority("a store's own authority")


@pytest.fixture(scope="session")
def other_authority() -> str:
    """The certificate of another authority, in PEM."""
    return make_authority("another authority").pem


@pytest.fixture(scope="session")
def bundle(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Path:
    """A file with the authority of the store with TLS and those that everybody trusts."""
    file = tmp_path_factory.mktemp("trust") / "bundle.pem"
    file.write_text(Path(certifi.where()).read_text() + authority.pem)
    return file


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Iterator[Sandbox]:
    """Start one sandbox with a real store for all tests. Its Lakekeeper trusts the authority of the store with TLS."""
    directory = tmp_path_factory.mktemp("sandbox")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("REQUESTS_CA_BUNDLE", str(bundle))
        started = lifecycle.bring_up(directory, lifecycle.SandboxOptions(s3=STORE)).sandbox
    yield started
    lifecycle.down(directory)


@pytest.fixture(scope="session")
def tls_store(
    tmp_path_factory: pytest.TempPathFactory, sandbox: Sandbox, authority: Authority, bundle: Path
) -> Iterator[TlsStore]:
    """Start a second MinIO, with TLS and the keys of the first."""
    folder = tmp_path_factory.mktemp("tls")
    certificates = write_certificate(authority, folder / "certificates")
    port = processes.free_port()
    with contextlib.ExitStack() as undo:
        keys = load_keys(Layout(sandbox.dir))
        _, wait = start_minio(
            minio_program(),
            folder / "data",
            port,
            keys,
            log=folder / "minio.log",
            undo=undo,
            certificates=certificates,
            trusted=bundle,
        )
        wait()
        yield TlsStore(f"https://127.0.0.1:{port}", authority.pem, bundle)


@pytest.fixture
def store(sandbox: Sandbox) -> StoreState:
    """The real store."""
    assert sandbox.store is not None
    return sandbox.store


def read_secret(reference: str) -> str:
    return Path(reference.removeprefix("file:")).read_text()


@pytest.fixture
def s3(store: StoreState) -> Callable[..., Any]:
    """A function that returns S3 clients: `s3()` with the administrator's key, `s3(tls_store)`, or with other keys."""

    def client(tls_store: TlsStore | None = None, **keys: str) -> Any:
        admin = {
            "aws_access_key_id": read_secret(store.access_key_id),
            "aws_secret_access_key": read_secret(store.secret_access_key),
        }
        return boto3.client(
            "s3",
            endpoint_url=tls_store.endpoint if tls_store else store.endpoint,
            verify=str(tls_store.bundle) if tls_store else None,
            region_name=store.region,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
            **(keys or admin),
        )

    return client


class StoreTenant(Tenant):
    """A tenant on the store."""

    @property
    def storage(self) -> dict[str, Any]:
        return self.spec["storage"]["main"]

    def destroy(self) -> dict[str, Any]:
        return self.verb("destroy", "--yes")


MakeStoreTenant = Callable[..., StoreTenant]


@pytest.fixture
def make_tenant(tmp_path: Path, sandbox: Sandbox, store: StoreState, bundle: Path) -> MakeStoreTenant:
    """Make a tenant whose stack makes its bucket in the store, or with other fields of its storage."""

    def make(storage: dict[str, Any] | None = None, **changes: Any) -> StoreTenant:
        name = new_name()
        folder = tmp_path / name
        environment = {
            "sandbox": str(sandbox.dir),
            "kubernetes": {"render_to": str(folder / "rendered"), "trial": True},
            "tenant_specs": {
                "references": ["env:", f"file:{sandbox.dir}/store/"],
                "endpoints": ["http://127.0.0.1:*", "https://127.0.0.1:*"],
            },
            "lakekeeper": {"jobs_ca_bundle": str(bundle)},
        }
        create_project(folder, environment)
        credential = {"access_key_id": store.access_key_id, "secret_access_key": store.secret_access_key}
        default_storage = {"backend": "s3", "store": "minio", "endpoint": store.endpoint, "region": store.region}
        main = default_storage | {"bucket": f"{name}-lake", "credential": credential, "create": True} | (storage or {})
        tenant = StoreTenant(folder, sandbox, tenant_spec(name, main) | changes)
        tenant.write()
        tenant.output("stack", "init")
        return tenant

    return make


def list_changed_kinds(result: dict[str, Any]) -> set[tuple[str, str]]:
    """Return the changes in a run's result: operation and kind."""
    return {(operation, kind) for operation, kind, _ in list_changes(result)}
