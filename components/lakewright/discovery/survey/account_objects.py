"""List objects of AWS accounts and Kubernetes clusters that look like objects of stacks."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from lakewright.credentials.aws_session import open_aws_session
from lakewright.discovery.survey.coverage import SurveyedObject
from lakewright.drift.objects.kubernetes.cluster import (
    ClusterUnreachableError,
    Collection,
    ListDeniedError,
    LiveCluster,
)
from lakewright.environment.cluster import Cluster as ClusterOptions
from lakewright.environment.environment import AwsAccount
from lakewright.environment.platform import TENANT_TAG
from lakewright.names.object_names import ROLE_PATH

TENANT_LABEL = "lakewright/tenant"
_NAMESPACES = Collection("/api/v1", "namespaces", is_namespaced=False)
_NOT_CONFIGURED = ("NoCredentialsError", "PartialCredentialsError", "NoRegionError")


def list_account_objects(account: AwsAccount, problems: list[str]) -> list[SurveyedObject]:
    """Return the buckets with the tag of a tenant and the roles of tenants' path. Add problems of lists that fail."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    objects: list[SurveyedObject] = []
    account_name = account.endpoint or "AWS"
    for kinds, list_objects in (("roles", _list_roles), ("buckets", _list_buckets)):
        try:
            objects += list_objects(account, account_name)
        except (BotoCoreError, ClientError) as error:
            if type(error).__name__ in _NOT_CONFIGURED:
                continue  # an environment without AWS
            problems.append(f"{kinds} at {account_name} could not be listed: {' '.join(str(error).split())}")
    return objects


def _list_roles(account: AwsAccount, account_name: str) -> Iterator[SurveyedObject]:
    for page in _client(account, "iam").get_paginator("list_roles").paginate(PathPrefix=ROLE_PATH):
        for role in cast(list[dict[str, Any]], page["Roles"]):
            yield SurveyedObject("aws role", account_name, str(role["RoleName"]), (str(role["RoleName"]),))


def _list_buckets(account: AwsAccount, account_name: str) -> Iterator[SurveyedObject]:
    """Yield the buckets with the tag of a tenant: from the tagging API, else from the tags of each bucket."""
    from botocore.exceptions import ClientError  # noqa: PLC0415

    names = list(_list_tagged_buckets(account)) if account.endpoint is None else None
    if names is None:
        s3, names = _client(account, "s3"), list[str]()
        for bucket in s3.list_buckets()["Buckets"]:
            try:
                tags = {tag["Key"] for tag in s3.get_bucket_tagging(Bucket=bucket["Name"])["TagSet"]}
            except ClientError:
                continue  # no tags, or the bucket of another owner
            if TENANT_TAG in tags:
                names.append(bucket["Name"])
    for name in names:
        yield SurveyedObject("bucket", account_name, name, (name,))


def _list_tagged_buckets(account: AwsAccount) -> Iterator[str]:
    pages = _client(account, "resourcegroupstaggingapi").get_paginator("get_resources")
    for page in pages.paginate(ResourceTypeFilters=["s3"], TagFilters=[{"Key": TENANT_TAG}]):
        for resource in cast(list[dict[str, Any]], page["ResourceTagMappingList"]):
            yield str(resource["ResourceARN"]).rpartition(":")[2]


def _client(account: AwsAccount, service: str) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    style = cast(Any, Config)(s3={"addressing_style": "path"} if account.endpoint else {}, connect_timeout=5)
    session = open_aws_session(account.profile, account.region, account.shared_credentials_file)
    return session.client(service, endpoint_url=account.endpoint, config=style)


def list_cluster_objects(cluster: ClusterOptions, problems: list[str]) -> list[SurveyedObject]:
    """Return the namespaces of tenants in a cluster; none for rendered manifests. Add problems of a failed list."""
    if cluster.render_to is not None:
        return []
    cluster_name = f"cluster {cluster.context or 'of the current context'}"
    try:
        namespaces = list(LiveCluster("", cluster.context or "").objects(_NAMESPACES, labels=TENANT_LABEL))
    except (ClusterUnreachableError, ListDeniedError) as error:
        problems.append(f"namespaces of {cluster_name} could not be listed: {error}")
        return []
    names = [str(entry["metadata"]["name"]) for entry in namespaces]
    return [SurveyedObject("kubernetes namespace", cluster_name, name, (name,)) for name in names]
