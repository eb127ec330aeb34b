"""A program that breaks each rule of the policy pack once; a test copies it into a project."""

import json
import os

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes
from pulumi.dynamic import CreateResult, Resource, ResourceProvider


class NothingProvider(ResourceProvider):
    def create(self, props: dict[str, object]) -> CreateResult:
        return CreateResult("made", props)


class ViolatingWarehouse(Resource, module="lakekeeper", name="Warehouse"):
    """Has the type and the inputs of a warehouse, and needs no server."""

    def __init__(self, name: str, **props: object) -> None:
        super().__init__(NothingProvider(), name, {"server": {"endpoint": "https://lakekeeper.example"}, **props})


s3 = os.environ["SANDBOX_S3"]
account = pulumi.ResourceOptions(
    provider=aws.Provider(
        "aws",
        region="us-east-1",
        endpoints=[{"s3": s3, "iam": s3, "sts": s3}],
        shared_credentials_files=[os.environ["SANDBOX_CREDENTIALS"]],
        profile="admin",
        s3_use_path_style=True,
        skip_credentials_validation=True,
        skip_metadata_api_check=True,
        skip_requesting_account_id=True,
    )
)
cluster = pulumi.ResourceOptions(
    provider=kubernetes.Provider("kubernetes", render_yaml_to_directory=os.environ["RENDER_TO"])
)

aws.s3.Bucket("bare", bucket="violations-bare", opts=account)
aws.s3.BucketPublicAccessBlock("open", bucket="violations-open", block_public_acls=True, opts=account)
everyone = {"Effect": "Allow", "Principal": "*", "Action": "sts:AssumeRole"}
role = aws.iam.Role(
    "role",
    name="violations",
    tags={"lakewright:owner": "tests"},
    assume_role_policy=json.dumps({"Version": "2012-10-17", "Statement": [everyone]}),
    opts=account,
)
aws.iam.RolePolicyAttachment(
    "attached", role="violations", policy_arn="arn:aws:iam::aws:policy/AdministratorAccess", opts=account
)
statement = {"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::violations-bare/*"}
aws.iam.RolePolicy(
    "wide",
    name="wide",
    role="violations",
    policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    opts=account,
)
ViolatingWarehouse(
    "static",
    credential={"type": "access-key"},
    deletion="purge",
    protected=False,
    delete_profile={"type": "hard"},
)
container = {
    "name": "spark",
    "image": "registry.example/spark:4.1",
    "env": [{"name": "AWS_SECRET_ACCESS_KEY", "value": "file:/somewhere"}],
    "securityContext": {"privileged": True},
}
labels = {"app": "unit"}
kubernetes.apps.v1.Deployment(
    "unit",
    metadata={"name": "unit"},
    spec={
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
    },
    opts=cluster,
)
