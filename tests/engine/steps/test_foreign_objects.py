"""An object with the name of an interrupted creation, but other properties, is not adopted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aws_programs import TRUST, client, stack_program
from lakewright_engine.model.resources import PendingOperation, ResourceState, StackSnapshot
from lakewright_engine.providers.provider import Provider
from lakewright_engine.steps.created_objects import list_mismatched_properties
from stackrunner import Stack

OTHER_TRUST = TRUST.replace("123456789012", "210987654321")


def create_interrupted_stack(tmp_path: Path, sandbox: object, name: str) -> Stack:
    """Return a stack with a bucket and a role `name`, whose state says that a run was killed during their creation."""
    program = f"""
aws.s3.Bucket("bucket", bucket={name!r}, force_destroy=True, tags={{"tenant": "a"}}, opts=opts)
aws.iam.Role("role", name={name!r}, assume_role_policy={TRUST!r}, opts=opts)
"""
    stack = Stack(tmp_path, stack_program(sandbox) + program)
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    other_resources = [resource for resource in stack.resources() if not resource.type.startswith("aws:")]
    aws_resources = [
        replace(resource, id="", outputs={}) for resource in stack.resources() if resource.type.startswith("aws:")
    ]
    stack.save(StackSnapshot(other_resources, [PendingOperation(resource, "creating") for resource in aws_resources]))
    return stack


def test_foreign_object_is_refused_by_up_and_kept_by_destroy(tmp_path: Path, sandbox: object) -> None:
    s3, iam = client(sandbox, "s3"), client(sandbox, "iam")
    stack = create_interrupted_stack(tmp_path, sandbox, "strange")
    s3.put_bucket_tagging(Bucket="strange", Tagging={"TagSet": [{"Key": "owner", "Value": "other"}]})
    iam.update_assume_role_policy(RoleName="strange", PolicyDocument=OTHER_TRUST)
    refused = stack.run("up")
    assert refused.exit == 1
    errors = [
        message for message in refused.messages if "and strange exists, but it is not the object of that run" in message
    ]
    assert errors
    assert all(": different tags. " in error or ": different assumeRolePolicy. " in error for error in errors)
    assert all("import_='strange'" in error for error in errors)

    outcome = stack.run("destroy")
    assert outcome.exit == 0, outcome.messages
    assert sorted(message.rpartition(" in ")[2] for message in outcome.messages if "is not adopted" in message) == [
        "assumeRolePolicy",
        "tags",
    ]
    assert s3.get_bucket_tagging(Bucket="strange")["TagSet"] == [{"Key": "owner", "Value": "other"}]
    assert "210987654321" in json.dumps(iam.get_role(RoleName="strange")["Role"]["AssumeRolePolicyDocument"])
    assert stack.list_pending_operations() == []


def test_bucket_without_tags_is_adopted(tmp_path: Path, sandbox: object) -> None:
    s3 = client(sandbox, "s3")
    stack = create_interrupted_stack(tmp_path, sandbox, "untagged")
    s3.delete_bucket_tagging(Bucket="untagged")
    outcome = stack.run("up")
    assert outcome.exit == 0, outcome.messages
    assert s3.get_bucket_tagging(Bucket="untagged")["TagSet"] == [{"Key": "tenant", "Value": "a"}]
    assert stack.list_pending_operations() == []


def test_adopted_bucket_is_not_emptied(tmp_path: Path, sandbox: object) -> None:
    s3 = client(sandbox, "s3")
    stack = create_interrupted_stack(tmp_path, sandbox, "in-use")
    s3.put_object(Bucket="in-use", Key="data", Body=b"data of a user")
    outcome = stack.run("destroy")
    assert outcome.exit == 1
    assert any("BucketNotEmpty" in message for message in outcome.messages)
    assert s3.get_object(Bucket="in-use", Key="data")["Body"].read() == b"data of a user"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [({"a": "1", "added": "by a controller"}, []), ({"a": "2"}, ["metadata.labels"]), ({}, ["metadata.labels"])],
)
def test_kubernetes_objects_are_identified_by_labels(labels: dict[str, Any], expected: list[str]) -> None:
    create_interrupted_stack = ResourceState(
        "urn:x", "kubernetes:core/v1:Namespace", custom=True, inputs={"metadata": {"labels": {"a": "1"}}}
    )
    live = replace(create_interrupted_stack, id="x", outputs={"metadata": {"labels": labels}})
    assert list_mismatched_properties(Provider("kubernetes", None), create_interrupted_stack, live) == expected
