"""Projects with warehouses, created through the public APIs of a sandbox or of real servers."""

from __future__ import annotations

import json
import uuid
from typing import Any

import boto3
import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse, Delegation

NAMESPACES = ["operator-port-result", "operator-console-messages", "workflow-runtime-statistics", "operator-port-state"]


class Project:
    """A project with its own bucket and role. The identity of `server` may create projects.

    On `real` servers it has its own prefix in the caller's bucket and uses the caller's key.
    """

    def __init__(self, server: httpx.Client, sandbox: Sandbox, real: Any = None) -> None:
        self.server, self.sandbox, self.real = server, sandbox, real
        self.id, self._external_id, self._bucket = str(uuid.uuid4()), str(uuid.uuid4()), f"spark-{uuid.uuid4().hex[:8]}"
        if real:
            self.id, self._bucket = f"{real.run}-{uuid.uuid4().hex[:6]}", real.bucket
            self._post("/management/v1/project", {"project-name": self.id, "project-id": self.id})
            return
        self._role = _bucket_and_role(sandbox, self._bucket, self._external_id)
        self._post("/management/v1/project", {"project-name": self._bucket, "project-id": self.id})

    def warehouse(self, name: str, *, delegation: Delegation = "vended") -> CatalogWarehouse:
        """Create a warehouse under a prefix of its name, with the namespaces of preset `texera`."""
        profile = {
            "type": "s3",
            "bucket": self._bucket,
            "region": self.sandbox.aws.region,
            "endpoint": self.sandbox.aws.endpoint,
            "path-style-access": True,
            "flavor": "s3-compat",
            "key-prefix": f"{self.id}/{name}" if self.real else name,
            "sts-enabled": delegation == "vended",
        }
        if self.real:
            credential = self.real.key_on_the_wire
        else:
            profile |= {"assume-role-arn": self._role, "sts-role-arn": self._role}
            credential = {"type": "s3", "credential-type": "aws-system-identity", "external-id": self._external_id}
        warehouse_id = self._post(
            "/management/v1/warehouse",
            {
                "warehouse-name": name,
                "project-id": self.id,
                "storage-profile": profile,
                "storage-credential": credential,
                "delete-profile": {"type": "hard"},
            },
        )["warehouse-id"]
        for namespace in NAMESPACES:
            self._post(f"/catalog/v1/{warehouse_id}/namespaces", {"namespace": [namespace], "properties": {}})
        return CatalogWarehouse(name=name, id=warehouse_id, delegation=delegation, namespaces=NAMESPACES)

    def location(self, name: str) -> str:
        """Return the location of the warehouse with this name."""
        return f"s3://{self._bucket}/{f'{self.id}/{name}' if self.real else name}"

    def config(self, *warehouses: CatalogWarehouse, **fields: Any) -> CatalogConfig:
        """Return the configuration that a stack would write for these warehouses."""
        uri = self.sandbox.lakekeeper.catalog_uri
        if self.real and self.real.token_url:
            fields = {"auth": self.real.auth, **fields}
        return CatalogConfig.model_validate(
            {"tenant": "spark-tests", "uri": uri, "project_id": self.id, "warehouses": list(warehouses), **fields}
        )

    def grant(self, user: str, privilege: str, warehouse: CatalogWarehouse) -> None:
        """Grant a user a privilege on a warehouse."""
        path = f"/management/v1/permissions/warehouse/{warehouse.id}/assignments"
        self._post(path, {"writes": [{"type": privilege, "user": user}]})

    def accepts_variant_columns(self, warehouse: CatalogWarehouse) -> bool:
        """Return whether the server parses a schema with a variant column. Nothing is created."""
        field = {"id": 1, "name": "v", "type": "variant", "required": False}
        body = {
            "name": "variants",
            "schema": {"type": "struct", "schema-id": 0, "fields": [field]},
            "properties": {"format-version": "3"},
            "stage-create": True,
        }
        response = self.server.post(f"/catalog/v1/{warehouse.id}/namespaces/{NAMESPACES[0]}/tables", json=body)
        if response.status_code == 422:  # the JSON cannot be read
            return False
        response.raise_for_status()
        return True

    def _post(self, path: str, body: dict[str, object]) -> dict[str, str]:
        return post(self.server, path, body)


def post(server: httpx.Client, path: str, body: dict[str, object], tolerate: str = "") -> dict[str, str]:
    response = server.post(path, json=body)
    if response.is_error and not (tolerate and tolerate in response.text):
        pytest.fail(f"POST {path}: {response.status_code} {response.text}")
    return response.json() if response.content else {}


def _bucket_and_role(sandbox: Sandbox, bucket: str, external_id: str) -> str:
    session = boto3.Session(
        aws_access_key_id=sandbox.admin.access_key_id,
        aws_secret_access_key=sandbox.admin.secret_access_key.get_secret_value(),
        region_name=sandbox.aws.region,
    )
    session.client("s3", endpoint_url=sandbox.aws.endpoint).create_bucket(Bucket=bucket)
    iam = session.client("iam", endpoint_url=sandbox.aws.endpoint)
    trust = {
        "Effect": "Allow",
        "Principal": {"AWS": sandbox.aws.catalog_principal_arn},
        "Action": "sts:AssumeRole",
        "Condition": {"StringEquals": {"sts:ExternalId": external_id}},
    }
    rights = {
        "Effect": "Allow",
        "Action": "s3:*",
        "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
    }
    role = iam.create_role(RoleName=bucket, Path="/lakewright/", AssumeRolePolicyDocument=_document(trust))["Role"][
        "Arn"
    ]
    iam.put_role_policy(RoleName=bucket, PolicyName="warehouse", PolicyDocument=_document(rights))
    return role


def _document(statement: dict[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
