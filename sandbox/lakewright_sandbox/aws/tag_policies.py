"""Refuse tags that a tag policy of AWS Organizations does not allow. Moto stores such policies and ignores them.

Sources: AWS Organizations User Guide, "Tag policy syntax and examples" (policy key, `tag_key`, `tag_value` with `*`,
`enforced_for`), "Enforce tagging consistency" (requests with a tag of another value or capitalization are refused;
requests without the tag are not), and "Services and resource types that support enforcement", which lists buckets and
keys, and no IAM roles. Amazon S3 API Reference, "List of Tagging-related error codes": 400 `TagPolicyException`. AWS
names no error of KMS for tag policies; here it is `TagException`, the error of CreateKey and TagResource for tags.

Policies of the organization's root and of the account apply; the sandbox has no organizational units. The only
operator is `@@assign`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast
from xml.etree import ElementTree

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.errors import AwsError
from lakewright_sandbox.aws.http import HttpRequest
from lakewright_sandbox.aws.moto_app import organizations
from lakewright_sandbox.typed.json_values import JsonObject, is_object

_ASSIGN = "@@assign"
_TYPE = "TAG_POLICY"
_ERRORS = {"s3:bucket": "TagPolicyException", "kms:key": "TagException"}


def check_bucket_tags(request: HttpRequest) -> None:
    """Raise AwsError for tags of a bucket that a policy refuses, in PutBucketTagging and CreateBucket."""
    if request.body and b"<!DOCTYPE" not in request.body:
        try:
            root = ElementTree.fromstring(request.body)  # noqa: S314 - without a DOCTYPE there are no entities
        except ElementTree.ParseError:
            return  # moto refuses it
        tags = [element for element in root.iter() if _local_name(element) == "Tag"]
        parts = [{_local_name(child): child.text or "" for child in tag} for tag in tags]
        _check_tags("s3:bucket", {part.get("Key", ""): part.get("Value", "") for part in parts})


def check_key_tags(operation: str, request: HttpRequest) -> None:
    """Raise AwsError for tags of a KMS key that a policy refuses, in CreateKey and TagResource."""
    if operation in ("CreateKey", "TagResource"):
        tags: list[dict[str, str]] = json.loads(request.body or b"{}").get("Tags") or []
        _check_tags("kms:key", {tag["TagKey"]: tag.get("TagValue", "") for tag in tags})


def check_policy(operation: str, request: HttpRequest) -> None:
    """Raise AwsError for a tag policy that the sandbox cannot enforce, in CreatePolicy and UpdatePolicy."""
    parameters: JsonObject = json.loads(request.body or b"{}")
    content = parameters.get("Content")
    if operation == "CreatePolicy" and parameters.get("Type") != _TYPE:
        raise AwsError("UnsupportedPolicyType", f"The sandbox enforces policies of the type {_TYPE} only.")
    if operation in ("CreatePolicy", "UpdatePolicy") and isinstance(content, str):
        dict(_parse(content))


def describe_effective_policy(request: HttpRequest) -> dict[str, Any]:
    """Return the response of DescribeEffectivePolicy for the account.

    Raises:
        AwsError: There is no organization, or no tag policy.
    """
    if json.loads(request.body or b"{}").get("PolicyType") != _TYPE:
        raise AwsError("InvalidInputException", f"The sandbox has policies of the type {_TYPE} only.")
    if organizations().org is None:
        raise AwsError("AWSOrganizationsNotInUseException", "Your account is not a member of an organization.")
    rules = find_effective_rules()
    if not rules:
        raise AwsError("EffectivePolicyNotFoundException", "There is no effective policy of this type.")
    content = json.dumps({"tags": rules})
    return {"EffectivePolicy": {"PolicyContent": content, "TargetId": ACCOUNT_ID, "PolicyType": _TYPE}}


def find_effective_rules() -> dict[str, dict[str, Any]]:
    """Return the rules for the account by policy key; a rule of the account overrides a rule of the root."""
    backend = organizations()
    roots = [target for target in backend.ou if getattr(target, "policy_types", None)]
    if not any(kind["Type"] == _TYPE for root in roots for kind in cast(Any, root).policy_types):
        return {}
    targets = [*roots, *(account for account in backend.accounts if account.id == ACCOUNT_ID)]
    rules: dict[str, dict[str, Any]] = {}
    for target in targets:
        for policy in target.attached_policies:
            if policy.type == _TYPE:
                for key, rule in _parse(str(policy.content)):
                    rules[key] = rules.get(key, {}) | rule
    return rules


def _parse(content: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rules of a policy by key in lower case, without operators."""
    try:
        document = json.loads(content)
    except ValueError:
        document = None
    tags = document.get("tags") if is_object(document) else None
    if not is_object(tags):
        raise AwsError("MalformedPolicyDocumentException", "A tag policy is a JSON object with the field `tags`.")
    for key, fields in tags.items():
        if not is_object(fields):
            raise AwsError("MalformedPolicyDocumentException", f"tags.{key} is not an object.")
        rule: dict[str, Any] = {"tag_key": key.lower()}
        for name, value in fields.items():
            if not is_object(value) or set(value) != {_ASSIGN}:
                message = f"tags.{key}.{name}: the sandbox supports the operator {_ASSIGN} only."
                raise AwsError("MalformedPolicyDocumentException", message)
            rule[name] = value[_ASSIGN]
        if str(rule["tag_key"]).lower() != key.lower():
            message = f"tags.{key}.tag_key differs from the policy key by more than capitalization."
            raise AwsError("MalformedPolicyDocumentException", message)
        yield key.lower(), rule


def _check_tags(resource_type: str, tags: Mapping[str, str]) -> None:
    if not tags:
        return
    rules = find_effective_rules()
    for key, value in tags.items():
        rule = rules.get(key.lower())
        if rule is not None and _is_enforced(rule, resource_type) and not _allows(rule, key, value):
            message = f"The tag policy does not allow the specified value for the following tag key: '{key}'."
            raise AwsError(_ERRORS[resource_type], message)


def _is_enforced(rule: Mapping[str, Any], resource_type: str) -> bool:
    service = resource_type.partition(":")[0]
    return not {resource_type, f"{service}:*", f"{service}:ALL_SUPPORTED"}.isdisjoint(rule.get("enforced_for") or ())


def _allows(rule: Mapping[str, Any], key: str, value: str) -> bool:
    values: list[str] = rule.get("tag_value") or ["*"]
    patterns = (".*".join(re.escape(part) for part in allowed.split("*")) for allowed in values)
    return key == rule["tag_key"] and any(re.fullmatch(pattern, value, re.DOTALL) for pattern in patterns)


def _local_name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]
