"""AWS objects of a killed run are found by their names and adopted."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from aws_programs import RIGHTS, TRUST, client, stack_program
from lakewright_engine.state.natural_ids import natural_id
from stackrunner import Stack


@pytest.mark.parametrize(
    ("name", "then"),
    [
        ("bucket", "up"),
        ("inline", "up"),
        pytest.param("versioning", "up", marks=pytest.mark.long),
        pytest.param("bucket", "destroy", marks=pytest.mark.long),
        ("role", "destroy"),
    ],
)
def test_object_of_interrupted_creation_is_adopted(tmp_path: Path, sandbox: object, name: str, then: str) -> None:
    unique = f"{name}-{then}"
    stack = Stack(
        tmp_path,
        stack_program(sandbox)
        + f"""
bucket = aws.s3.Bucket("bucket", bucket="taken-{unique}", opts=opts)
aws.s3.BucketVersioning("versioning", bucket=bucket.bucket, versioning_configuration={{"status": "Enabled"}}, opts=opts)
role = aws.iam.Role("role", name="taken-{unique}", assume_role_policy={TRUST!r}, opts=opts)
aws.iam.RolePolicy("inline", name="inline", role=role.name, policy={RIGHTS!r}, opts=opts)
""",
    )
    killed = stack.run_up(name)
    assert killed.returncode == -signal.SIGKILL
    assert name in {op.resource.urn.rsplit("::", 1)[-1] for op in stack.list_pending_operations()}
    stack.backend.cancel("conf", "dev")

    outcome = stack.run(then)
    assert outcome.exit == 0, outcome.messages
    assert stack.list_pending_operations() == []
    names = [bucket["Name"] for bucket in client(sandbox, "s3").list_buckets()["Buckets"]]
    assert [name for name in names if name.endswith(unique)] == ([f"taken-{unique}"] if then == "up" else [])
    if then == "up":
        assert stack.run("preview", "--refresh", "--expect-no-changes").exit == 0
        assert stack.run("destroy").exit == 0


@pytest.mark.parametrize(
    ("type_", "inputs", "expected"),
    [
        ("aws:s3/bucket:Bucket", {"bucket": "b"}, "b"),
        ("aws:iam/rolePolicy:RolePolicy", {"role": "r", "name": "p"}, "r:p"),
        ("aws:iam/rolePolicy:RolePolicy", {"role": "r"}, ""),
        ("kubernetes:core/v1:Namespace", {"metadata": {"name": "n"}}, "n"),
        ("kubernetes:apps/v1:Deployment", {"metadata": {"name": "d", "namespace": "n"}}, "n/d"),
        ("pulumi-python:dynamic/store:File", {"name": "x"}, ""),
    ],
)
def test_natural_ids(type_: str, inputs: dict, expected: str) -> None:
    assert natural_id(type_, inputs) == expected
