"""The functions of the aws provider: caller identity, region, partition and policy documents."""

from __future__ import annotations

from collections.abc import Callable

from lakewright_sandbox.providers.aws.resources.calls import describe_errors
from lakewright_sandbox.providers.aws.resources.connection import AwsConnection
from lakewright_sandbox.providers.aws.resources.policies import policy_document
from lakewright_sandbox.providers.protocol.properties import Properties


def caller_identity(aws: AwsConnection, args: Properties) -> Properties:
    """Return the result of `aws.get_caller_identity`."""
    with describe_errors("asking who the caller is", aws.get_endpoint("sts")):
        response = aws.client("sts").get_caller_identity()
    return args | {
        "accountId": response["Account"],
        "arn": response["Arn"],
        "id": response["Account"],
        "userId": response["UserId"],
    }


def region(aws: AwsConnection, args: Properties) -> Properties:
    """Return the result of `aws.get_region`: the requested region, by default the provider's."""
    name = args.get("region") or args.get("name") or aws.region
    return {"description": name, "endpoint": f"ec2.{name}.amazonaws.com", "id": name, "name": name, "region": name}


def partition(aws: AwsConnection, args: Properties) -> Properties:  # noqa: ARG001
    """Return the result of `aws.get_partition`: a sandbox is in the standard one."""
    return {"dnsSuffix": "amazonaws.com", "id": "aws", "partition": "aws", "reverseDnsPrefix": "com.amazonaws"}


def document(aws: AwsConnection, args: Properties) -> Properties:  # noqa: ARG001
    """Return the result of `aws.iam.get_policy_document`."""
    return policy_document(args)


FUNCTIONS: dict[str, Callable[[AwsConnection, Properties], Properties]] = {
    "aws:iam/getPolicyDocument:getPolicyDocument": document,
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
    "aws:index/getPartition:getPartition": partition,
    "aws:index/getRegion:getRegion": region,
}
