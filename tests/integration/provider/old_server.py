"""A server that plays a version, and declarations on it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

import httpx
from lakewright.credentials.references import resolve
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright_sandbox.lakekeeper.protocol.versions import Version
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.resource import Props, Resource

VERSIONS = ("0.11", "0.12", "0.13", "0.14")


@dataclass
class OldServer:
    """A server that plays a version, and declarations on it."""

    version: Version
    http: httpx.Client
    sandbox: Sandbox
    bucket: str

    def is_at_least(self, version: str) -> bool:
        return [int(part) for part in self.version.split(".")] >= [int(part) for part in version.split(".")]

    @property
    def server(self) -> Props:
        return {"endpoint": str(self.http.base_url).rstrip("/")}

    def client(self) -> Client:
        return Client(ServerRef.model_validate(self.server), resolve)

    def project(self) -> Props:
        return {"server": self.server, "project_id": f"p{uuid.uuid4().hex}", "name": "tenant"}

    def storage(self, **changes: Any) -> Props:
        bucket_props = {"bucket": self.bucket, "key_prefix": uuid.uuid4().hex, "region": "us-east-1"}
        endpoint_props = {"endpoint": self.sandbox.aws.endpoint, "flavor": "s3-compat", "path_style_access": True}
        return bucket_props | endpoint_props | changes

    def warehouse(self, **changes: Any) -> Props:
        project = self.project()
        Resource(ProjectProvider()).up(**project)
        keys = {"type": "access-key", "access_key_id": "env:KEY_ID", "secret_access_key": "env:KEY"}
        warehouse_props = {"server": self.server, "project_id": project["project_id"], "name": "main"}
        return warehouse_props | {"storage": self.storage(), "credential": keys} | changes
