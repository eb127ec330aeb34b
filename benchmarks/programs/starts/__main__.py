"""One object of each provider: running this costs what starting the program and the providers costs."""

import json
from pathlib import Path

import lakewright.tenant  # noqa: F401  # what the tenants' program imports
import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
from lakewright.environment import Environment
from lakewright.lakekeeper import ExternalId
from lakewright.platform import Platform

platform = Platform(Environment.load(Path(pulumi.Config().require("environment"))), tenant="starts")
in_aws = pulumi.ResourceOptions(provider=platform.aws(platform.region))

aws.s3.Bucket("starts", bucket="lakewright-starts", opts=in_aws)
trust = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": platform.principal_arn}}
aws.iam.Role(
    "starts",
    name="lakewright-starts",
    assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [trust]}),
    opts=in_aws,
)
kubernetes.core.v1.Namespace(
    "starts", metadata={"name": "starts"}, opts=pulumi.ResourceOptions(provider=platform.kubernetes())
)
ExternalId("starts")
