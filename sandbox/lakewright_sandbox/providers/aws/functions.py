"""The aws functions that a program may call: who calls, where, and policy documents."""

from __future__ import annotations

from collections.abc import Callable

from lakewright_sandbox.providers.aws.resources.calls import doing
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.policies import policy_document
from lakewright_sandbox.providers.protocol.properties import Properties


def caller_identity(aws: AwsConnection, args: Properties) -> Properties:
    """`aws.get_caller_identity`: whose keys these are."""
    with doing("asking who the caller is", aws.endpoint_of("sts")):
        answer = aws.client("sts").get_caller_identity()
    return args | {
        "accountId": answer["Account"],
        "arn": answer["Arn"],
        "id": answer["Account"],
        "userId": answer["UserId"],
    }


def region(aws: AwsConnection, args: Properties) -> Properties:
    """`aws.get_region`: the region in use."""
    name = args.get("region") or args.get("name") or aws.region
    return {"description": name, "endpoint": f"ec2.{name}.amazonaws.com", "id": name, "name": name, "region": name}


def partition(aws: AwsConnection, args: Properties) -> Properties:  # noqa: ARG001
    """`aws.get_partition`: a sandbox is always in the standard one."""
    return {"dnsSuffix": "amazonaws.com", "id": "aws", "partition": "aws", "reverseDnsPrefix": "com.amazonaws"}


def document(aws: AwsConnection, args: Properties) -> Properties:  # noqa: ARG001
    """`aws.iam.get_policy_document`: a policy document from its parts."""
    return policy_document(args)


FUNCTIONS: dict[str, Callable[[AwsConnection, Properties], Properties]] = {
    "aws:iam/getPolicyDocument:getPolicyDocument": document,
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
    "aws:index/getPartition:getPartition": partition,
    "aws:index/getRegion:getRegion": region,
}
