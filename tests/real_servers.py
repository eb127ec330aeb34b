"""The user's servers for `make test-real`: their addresses, and the removal of what tests made there."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import boto3
import httpx
import pytest
from botocore.config import Config
from lakewright.credentials.references import resolve
from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.catalog import contents
from lakewright.lakekeeper.api.connection.auth import make_auth
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import BusyError, LakekeeperError, NotFoundError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import project_record, projects, roles, users, warehouses
from lakewright_sandbox.runtime.state import AwsState, LakekeeperState, Sandbox

ENDPOINT = "TEST_REAL_LAKEKEEPER"
CLIENT_SECRET = "TEST_REAL_CLIENT_SECRET"
KEY_ID, SECRET = "TEST_REAL_KEY_ID", "TEST_REAL_SECRET"
"""Variables that hold the user's S3 key during the tests, for references to it."""

PREFIX = "lwt"
"""Names of all objects of a run begin with this prefix and the run's six letters."""

CLEANERS = 8
"""Threads that remove projects."""

PURGE_WAIT = 120
"""Maximum seconds to wait for the purges of one warehouse."""


@dataclass
class RealServers:
    """An existing Lakekeeper and S3 store, and what one run made on them."""

    lakekeeper: str
    s3: str
    region: str
    given_bucket: str | None
    token_url: str | None
    client_id: str
    scope: str | None
    kubeconfig: str | None
    begun: bool = False
    """Whether a test has used the servers."""
    run: str = field(default_factory=lambda: f"{PREFIX}{uuid.uuid4().hex[:6]}")
    warehouse_ids: set[str] = field(default_factory=set[str])
    """Warehouses that tests made directly: released servers do not list inactive ones."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] = os.environ) -> RealServers | None:
        """Read the settings of `make test-real`; return None where tests run on the sandbox."""
        if not environ.get(ENDPOINT):
            return None
        missing = [name for name in ("TEST_REAL_S3", KEY_ID, SECRET) if not environ.get(name)]
        if missing:
            raise pytest.UsageError(f"`make test-real` needs {', '.join(missing)}; see docs/guides/test-real.md")
        return cls(
            lakekeeper=environ[ENDPOINT].rstrip("/"),
            s3=environ["TEST_REAL_S3"].rstrip("/") + "/",
            region=environ.get("TEST_REAL_REGION") or "us-east-1",
            given_bucket=environ.get("TEST_REAL_BUCKET") or None,
            token_url=environ.get("TEST_REAL_TOKEN_URL") or None,
            client_id=environ.get("TEST_REAL_CLIENT_ID") or "",
            scope=environ.get("TEST_REAL_SCOPE") or None,
            kubeconfig=environ.get("TEST_REAL_KUBECONFIG") or None,
        )

    @property
    def bucket(self) -> str:
        """Return the given bucket, or the bucket of this run."""
        return self.given_bucket or f"{self.run}-lakehouse"

    @property
    def auth(self) -> dict[str, Any]:
        """Return the authentication of stacks and jobs, by references."""
        if self.token_url is None:
            return {"kind": "none"}
        authentication = {"kind": "client-credentials", "token_url": self.token_url, "client_id": self.client_id}
        return (
            authentication | {"client_secret": f"env:{CLIENT_SECRET}"} | ({"scope": self.scope} if self.scope else {})
        )

    @property
    def server(self) -> dict[str, Any]:
        """Return the `server` property of a resource."""
        return {"endpoint": self.lakekeeper} | ({} if self.token_url is None else {"auth": self.auth})

    @property
    def credential(self) -> dict[str, str]:
        """Return a warehouse's credential, by references."""
        return {"type": "access-key", "access_key_id": f"env:{KEY_ID}", "secret_access_key": f"env:{SECRET}"}

    @property
    def key_on_the_wire(self) -> dict[str, str]:
        """Return the same credential as the management API takes it."""
        key = {"aws-access-key-id": os.environ[KEY_ID], "aws-secret-access-key": os.environ[SECRET]}
        return {"type": "s3", "credential-type": "access-key"} | key

    @property
    def store(self) -> dict[str, Any]:
        """Return the storage of a tenant's spec."""
        keys = {"access_key_id": f"env:{KEY_ID}", "secret_access_key": f"env:{SECRET}"}
        storage = {"backend": "s3", "bucket": self.bucket, "endpoint": self.s3, "region": self.region}
        return storage | {"credential": keys}

    def environment(self, render_to: Path) -> dict[str, Any]:
        """Return the environment of tenants. Without a cluster, manifests are written to a folder."""
        lakekeeper = {"endpoint": self.lakekeeper}
        if self.token_url is not None:
            lakekeeper |= {"auth": self.auth, "jobs_auth": self.auth, "trial": True}
        return {
            "lakekeeper": lakekeeper,
            "kubernetes": {"trial": True} | ({} if self.kubeconfig else {"render_to": str(render_to)}),
            "tenant_specs": {"references": ["config:", "env:"], "endpoints": [self.s3]},
        }

    @property
    def version(self) -> str:
        """Return the server's version as `major.minor`."""
        return ".".join(str(part) for part in self.client.server().version)

    @cached_property
    def client(self) -> Client:
        """Return the provider's own client with the user's identity."""
        return Client(ServerRef.model_validate(self.server), resolve)

    def http(self) -> httpx.Client:
        """Return a plain HTTP client with the user's identity. A test that requests a fault is skipped."""
        return httpx.Client(
            base_url=self.lakekeeper,
            auth=make_auth(ServerRef.model_validate(self.server), resolve),
            timeout=60,
            event_hooks={"request": [_no_fault_switch]},
        )

    def s3_client(self, key: Mapping[str, str] | None = None) -> Any:
        """Return an S3 client of the store, with the user's key or another one."""
        config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1} if key else {})
        user_key = {"aws_access_key_id": os.environ[KEY_ID], "aws_secret_access_key": os.environ[SECRET]}
        session = boto3.Session(**(key or user_key), region_name=self.region)
        return session.client("s3", endpoint_url=self.s3, config=config)

    def aws(self, service: str, key: Mapping[str, str] | None = None) -> Any:
        """Return a client of the store. A test that requests another AWS service is skipped."""
        if service != "s3":
            leave_out(f"makes things in {service.upper()}, which the sandbox has")
        client = self.s3_client(key)
        client.create_bucket = lambda **_: leave_out("makes buckets of its own")
        client.list_buckets = lambda **_: leave_out("looks for buckets that the stack made")
        # All tests of a run share one bucket, which may be the user's.
        client.put_bucket_versioning = lambda **_: leave_out("changes settings of a bucket")
        client.get_bucket_encryption = lambda **_: leave_out("looks at settings of a bucket that the stack made")
        return client

    def as_sandbox(self, directory: Path) -> Sandbox:
        """Return the servers in the shape of a sandbox, without any process."""
        credentials = directory / "credentials"
        keys = f"aws_access_key_id = {os.environ[KEY_ID]}\naws_secret_access_key = {os.environ[SECRET]}\n"
        credentials.write_text("".join(f"[{profile}]\n{keys}" for profile in ("admin", "lakekeeper")))
        credentials.chmod(0o600)
        aws = AwsState(endpoint=self.s3, region=self.region, account_id="", pid=0, catalog_principal_arn="")
        catalog = LakekeeperState(endpoint=self.lakekeeper, catalog_uri=f"{self.lakekeeper}/catalog", pid=0)
        return Sandbox(id=self.run, dir=directory, lakekeeper=catalog, aws=aws, credentials_file=credentials)

    def begin(self) -> None:
        """Make the run's bucket if none was given."""
        if not self.client.server().bootstrapped:
            pytest.exit(f"{self.lakekeeper} is not bootstrapped: bootstrap it first", returncode=2)
        self.begun = True
        if not self.given_bucket:
            self.s3_client().create_bucket(Bucket=self.bucket)

    def clean_up(self) -> list[str]:
        """Remove what this run made. Return a line for each object that could not be removed."""
        mine = sorted(project for project in projects.list_all(self.client) if self.run in project)
        _ = self._unlisted  # Read it once, before the threads need it.
        with ThreadPoolExecutor(
            CLEANERS
        ) as pool:  # A run leaves hundreds of projects, and the server works off purges meanwhile.
            reports = pool.map(lambda one: _try_remove(f"project {one}", lambda: self._remove_project(one)), mine)
        failures = [line for report in reports for line in report]
        failures += self._empty_default_project()
        for user in users.list_all(self.client):
            if self.run in str(user["id"]):
                failures += _try_remove(
                    f"user {user['id']}", lambda one=user: users.delete(self.client, str(one["id"]))
                )
        failures += _try_remove(f"objects of {self.bucket}", self._empty_bucket)
        failures += [
            f"project {project} is still there" for project in projects.list_all(self.client) if self.run in project
        ]
        if self.kubeconfig:
            failures += self._remove_kubernetes_namespaces()
        self.client.close()
        return failures

    @cached_property
    def _unlisted(self) -> dict[str, str]:
        """Return the projects of the remaining warehouses that tests made directly, by warehouse id."""
        candidates = ((item, warehouses.get(self.client, item)) for item in self.warehouse_ids)
        return {warehouse_id: str(warehouse["project-id"]) for warehouse_id, warehouse in candidates if warehouse}

    def _remove_project(self, project_id: str) -> None:
        warehouse_ids = {warehouses.read_id(warehouse) for warehouse in warehouses.list_all(self.client, project_id)}
        for warehouse_id in warehouse_ids | {
            warehouse_id for warehouse_id, project in self._unlisted.items() if project == project_id
        }:
            self._remove_warehouse(warehouse_id)
        for role in roles.list_all(self.client, project_id):
            roles.delete(self.client, project_id, str(role["id"]))
        project_record.delete_mark(self.client, project_id)
        projects.delete(self.client, project_id)

    def _empty_default_project(self) -> list[str]:
        """Remove the run's warehouses and roles from the default project, which several tenants share."""
        project = self.client.server().default_project_id
        if project is None:
            return []
        failures: list[str] = []
        for warehouse in warehouses.list_all(self.client, project):
            if self.run in str(warehouse["name"]):
                warehouse_id = warehouses.read_id(warehouse)
                failures += _try_remove(
                    f"warehouse {warehouse['name']}", lambda item=warehouse_id: self._remove_warehouse(item)
                )
        records = roles.list_records(self.client, project).values()
        for role in [*roles.list_all(self.client, project), *records]:
            if self.run in f"{role['name']} {role.get('description')}":
                role_id = str(role["id"])
                failures += _try_remove(
                    f"role {role['name']}", lambda item=role_id: roles.delete(self.client, project, item)
                )
        return failures

    def _remove_warehouse(self, warehouse_id: str) -> None:
        warehouse = warehouses.get(self.client, warehouse_id)
        if warehouse and warehouse["status"] != "active":
            warehouses.activate(self.client, warehouse_id)
        warehouses.change(self.client, warehouse_id, "protection", {"protected": False})
        _unprotect(self.client, warehouse_id)
        contents.purge(self.client, warehouse_id)
        retry_until(
            lambda: warehouses.delete(self.client, warehouse_id),
            lambda error: isinstance(error, BusyError),
            seconds=PURGE_WAIT,
            every=0.5,
        )

    def _empty_bucket(self) -> None:
        s3 = self.s3_client()
        prefix = "" if not self.given_bucket else self.run
        for page in s3.get_paginator("list_object_versions").paginate(Bucket=self.bucket, Prefix=prefix):
            for item in [*page.get("Versions", []), *page.get("DeleteMarkers", [])]:
                s3.delete_object(Bucket=self.bucket, Key=item["Key"], VersionId=item["VersionId"])
        if not self.given_bucket:
            s3.delete_bucket(Bucket=self.bucket)

    def _remove_kubernetes_namespaces(self) -> list[str]:
        kubectl = [shutil.which("kubectl") or "kubectl", f"--kubeconfig={self.kubeconfig}"]
        result = subprocess.run(
            [*kubectl, "get", "namespaces", "-o", "name"], check=False, capture_output=True, text=True
        )
        if result.returncode:
            return [f"namespaces of the cluster: {result.stderr.strip()}"]
        mine = [name for name in result.stdout.split() if f"tenant-{self.run}" in name]
        for name in mine:
            subprocess.run([*kubectl, "delete", name, "--wait=false"], check=False, capture_output=True)
        return []


def _unprotect(client: Client, warehouse_id: str) -> None:
    from lakewright.lakekeeper.api.catalog import namespaces, tables

    warehouse_contents = contents.read_warehouse(client, warehouse_id)
    for namespace in warehouse_contents.namespaces:
        if namespace.protected:
            namespaces.protect(client, warehouse_id, namespace.namespace_id, protected=False)
    for tabular in warehouse_contents.tabulars:
        if tabular.protected and tabular.kind == "table":
            tables.protect(client, warehouse_id, tabular.tabular_id, protected=False)


def _try_remove(label: str, remove: Any) -> list[str]:
    try:
        remove()
    except NotFoundError:
        return []
    except Exception as error:  # noqa: BLE001 - a failure must not keep the rest from being removed
        return [
            f"{label}: {type(error).__name__}: {error}" if isinstance(error, LakekeeperError) else f"{label}: {error}"
        ]
    return []


def _no_fault_switch(request: httpx.Request) -> None:
    if request.url.path.startswith("/sandbox/"):
        leave_out("needs the stand-in's switch of faults, calls and clock")


def leave_out(reason: str) -> NoReturn:
    """Skip a test that real servers cannot run. The summary counts the reasons."""
    pytest.skip(f"not on real servers: {reason}")
