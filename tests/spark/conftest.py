"""A warehouse made by hand through the public APIs, so that these tests depend on no other part of the project."""

from __future__ import annotations

import json
import sys
import uuid
from pathlib import Path

import boto3
import httpx
import pytest
from lakewright_sandbox.state import Sandbox
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse

sys.path.insert(0, str(Path(__file__).parent))  # what these tests share beside their fixtures

NAMESPACES = ["operator-port-result", "operator-console-messages", "workflow-runtime-statistics", "operator-port-state"]


@pytest.fixture(scope="session")
def catalog_config(sandbox: Sandbox) -> CatalogConfig:
    """A tenant with one warehouse, `results`, that vends credentials, and the namespaces of preset `texera`."""
    project, external_id, bucket = str(uuid.uuid4()), str(uuid.uuid4()), f"spark-{uuid.uuid4().hex[:8]}"
    role = _bucket_and_role(sandbox, bucket, external_id)
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
        _post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True}, tolerate="CatalogAlreadyBootstrapped")
        _post(server, "/management/v1/project", {"project-name": bucket, "project-id": project})
        profile = {
            "type": "s3",
            "bucket": bucket,
            "region": sandbox.aws.region,
            "endpoint": sandbox.aws.endpoint,
            "path-style-access": True,
            "flavor": "s3-compat",
            "key-prefix": "results",
            "sts-enabled": True,
            "assume-role-arn": role,
            "sts-role-arn": role,
        }
        credential = {"type": "s3", "credential-type": "aws-system-identity", "external-id": external_id}
        warehouse = _post(
            server,
            "/management/v1/warehouse",
            {
                "warehouse-name": "results",
                "project-id": project,
                "storage-profile": profile,
                "storage-credential": credential,
                "delete-profile": {"type": "hard"},
            },
        )["warehouse-id"]
        for name in NAMESPACES:
            _post(server, f"/catalog/v1/{warehouse}/namespaces", {"namespace": [name], "properties": {}})
    return CatalogConfig(
        tenant="spark-tests",
        uri=sandbox.lakekeeper.catalog_uri,
        project_id=project,
        warehouses=[CatalogWarehouse(name="results", id=warehouse, namespaces=NAMESPACES)],
    )


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
        "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/results/*"],
    }
    role = iam.create_role(RoleName=bucket, AssumeRolePolicyDocument=_document(trust))["Role"]["Arn"]
    iam.put_role_policy(RoleName=bucket, PolicyName="warehouse", PolicyDocument=_document(rights))
    return role


def _document(statement: dict[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


def _post(server: httpx.Client, path: str, body: dict[str, object], tolerate: str = "") -> dict[str, str]:
    response = server.post(path, json=body)
    if response.is_error and not (tolerate and tolerate in response.text):
        pytest.fail(f"POST {path}: {response.status_code} {response.text}")
    return response.json() if response.content else {}
