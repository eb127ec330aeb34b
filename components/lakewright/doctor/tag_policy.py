"""Compare the tags of a tenant's AWS objects with the tag policy of the organization, before AWS refuses them."""

# boto3 carries no types; its values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from lakewright.credentials.aws_session import open_aws_session
from lakewright.doctor.finding import Finding
from lakewright.doctor.services import make_client_config
from lakewright.validation.documents import as_mapping

if TYPE_CHECKING:
    from lakewright.environment.environment import AwsAccount

SUBJECT = "tag policy"
_NO_POLICY = ("AWSOrganizationsNotInUseException", "EffectivePolicyNotFoundException")


def check_tag_policy(account: AwsAccount, tags: Mapping[str, str], resource_types: tuple[str, ...]) -> list[Finding]:
    """Check that the tag policy of the account's organization allows the tags. Only reads.

    AWS compares the tags of a request only, so a stack that makes no such objects has nothing to compare.
    Source: AWS Organizations User Guide, "Tag policy syntax and examples" and "Enforce tagging consistency".

    Args:
        account: The account of the environment.
        tags: Tags of the stack's objects.
        resource_types: Types of the objects as tag policies name them, such as `s3:bucket`.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    if not resource_types:
        return []
    try:
        session = open_aws_session(account.profile, account.region, account.shared_credentials_file)
        client = session.client("organizations", endpoint_url=account.endpoint, config=make_client_config())
        response = client.describe_effective_policy(PolicyType="TAG_POLICY")
    except ClientError as error:
        code = cast(Any, error).response["Error"]["Code"]
        if code in _NO_POLICY:
            return []
        result = f"not compared: {code} for organizations:DescribeEffectivePolicy"
        return [Finding(SUBJECT, "optional", result, "nothing; AWS compares the tags when `up` makes the objects")]
    except BotoCoreError:
        return []  # `check_aws` reports an identity or an endpoint that cannot be used
    rules = as_mapping(json.loads(response["EffectivePolicy"]["PolicyContent"]).get("tags"))
    refused_tags = [*_find_refused_tags(rules, tags, resource_types)]
    if not refused_tags:
        return [Finding(SUBJECT, "ok", "allows the tags of the tenant's objects")]
    fix = "change the label or tag (`labels` of the spec, `aws.tags` of the environment), or have the policy changed"
    return [Finding(SUBJECT, "missing", result, fix) for result in refused_tags]


def _find_refused_tags(
    rules: Mapping[str, Any], tags: Mapping[str, str], resource_types: tuple[str, ...]
) -> Iterator[str]:
    for rule in map(as_mapping, rules.values()):
        types = [kind for kind in resource_types if _is_enforced(rule, kind)]
        policy_key, values = str(rule.get("tag_key")), [str(value) for value in rule.get("tag_value") or ["*"]]
        for key, value in tags.items():
            if not types or key.lower() != policy_key.lower():
                continue
            if key != policy_key:
                yield f"expected the key `{policy_key}` of a tag of {' and '.join(types)}, found `{key}`"
            elif not any(_matches(value, allowed) for allowed in values):
                expected = " or ".join(f"`{allowed}`" for allowed in values)
                yield f"expected {expected} in the tag `{key}` of {' and '.join(types)}, found `{value}`"


def _is_enforced(rule: Mapping[str, Any], resource_type: str) -> bool:
    service = resource_type.partition(":")[0]
    return not {resource_type, f"{service}:*", f"{service}:ALL_SUPPORTED"}.isdisjoint(rule.get("enforced_for") or ())


def _matches(value: str, allowed: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, allowed.split("*"))), value) is not None
