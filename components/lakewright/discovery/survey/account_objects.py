"""List objects of AWS accounts and Kubernetes clusters that look like objects of stacks."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
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
_INVALID_KEYS = ("UnrecognizedClientException", "InvalidClientTokenId")
"""Codes of errors in regions that an account has not enabled."""


def list_account_objects(
    account: AwsAccount, bucket_regions: Iterable[str], problems: list[str]
) -> list[SurveyedObject]:
    """Return the buckets with the tag of a tenant and the roles of tenants' path. Add problems of lists that fail.

    Args:
        account: The account.
        bucket_regions: Regions to search for buckets, beside the default region: AWS lists tagged objects by region.
        problems: Problems of the survey.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    account_name = account.endpoint or "AWS"
    objects: list[SurveyedObject] = []
    try:
        objects += _list_roles(account, account_name)
    except (BotoCoreError, ClientError) as error:
        if type(error).__name__ in _NOT_CONFIGURED:
            return []  # an environment without AWS
        problems.append(_describe_failure("roles", account_name, error))
    try:
        if account.endpoint is None:
            objects += _list_regional_buckets(account, account_name, bucket_regions, problems)
        else:
            objects += _list_buckets_by_tags(account, account_name)
    except (BotoCoreError, ClientError) as error:
        problems.append(_describe_failure("buckets", account_name, error))
    return objects


def _list_roles(account: AwsAccount, account_name: str) -> Iterator[SurveyedObject]:
    for page in _open_client(account, "iam").get_paginator("list_roles").paginate(PathPrefix=ROLE_PATH):
        for role in cast(list[dict[str, Any]], page["Roles"]):
            yield SurveyedObject("aws role", account_name, str(role["RoleName"]), (str(role["RoleName"]),))


def _list_buckets_by_tags(account: AwsAccount, account_name: str) -> Iterator[SurveyedObject]:
    """Yield the buckets whose tags have the tag of a tenant. A sandbox has no tagging API."""
    from botocore.exceptions import ClientError  # noqa: PLC0415

    s3 = _open_client(account, "s3")
    for bucket in s3.list_buckets()["Buckets"]:
        try:
            tags = {tag["Key"] for tag in s3.get_bucket_tagging(Bucket=bucket["Name"])["TagSet"]}
        except ClientError:
            continue  # no tags, or the bucket of another owner
        if TENANT_TAG in tags:
            yield SurveyedObject("bucket", account_name, bucket["Name"], (bucket["Name"],))


def _list_regional_buckets(
    account: AwsAccount, account_name: str, bucket_regions: Iterable[str], problems: list[str]
) -> Iterator[SurveyedObject]:
    """Yield the buckets of each region with the tag of a tenant, from the tagging API. Note which were searched."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    default_region: str | None = _open_session(account).region_name
    regions = sorted({*bucket_regions, *([default_region] if default_region else list[str]())})
    searched_regions: list[str] = []
    for region in regions:
        try:
            yield from _list_tagged_buckets(account, account_name, region)
        except (BotoCoreError, ClientError) as error:
            response = cast(dict[str, Any], getattr(error, "response", {}))
            if region == default_region or response.get("Error", {}).get("Code") not in _INVALID_KEYS:
                problems.append(_describe_failure(f"buckets in {region}", account_name, error))
        else:
            searched_regions.append(region)
    if regions:
        scope = ", ".join(searched_regions) or "no region"
        print(f"note: {account_name}: buckets were searched for in {scope} only", file=sys.stderr)
    else:
        problems.append(
            f"buckets at {account_name} could not be listed: no region is set. Set `aws.region` of the environment"
        )


def _list_tagged_buckets(account: AwsAccount, account_name: str, region: str) -> Iterator[SurveyedObject]:
    pages = _open_client(account, "resourcegroupstaggingapi", region).get_paginator("get_resources")
    for page in pages.paginate(ResourceTypeFilters=["s3"], TagFilters=[{"Key": TENANT_TAG}]):
        for resource in cast(list[dict[str, Any]], page["ResourceTagMappingList"]):
            name = str(resource["ResourceARN"]).rpartition(":")[2]
            yield SurveyedObject("bucket", account_name, name, (name,))


def _open_client(account: AwsAccount, service: str, region: str | None = None) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    style = cast(Any, Config)(s3={"addressing_style": "path"} if account.endpoint else {}, connect_timeout=5)
    return _open_session(account).client(service, region_name=region, endpoint_url=account.endpoint, config=style)


def _open_session(account: AwsAccount) -> Any:
    return open_aws_session(account.profile, account.region, account.shared_credentials_file)


def _describe_failure(kinds: str, account_name: str, error: Exception) -> str:
    return f"{kinds} at {account_name} could not be listed: {' '.join(str(error).split())}"


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
