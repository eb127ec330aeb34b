"""Settings of a bucket in one spelling, so that a declared setting and a store's response can be compared. Pure."""

import json
from typing import Any, cast

from lakewright_spark.aws_partition import bucket_arn

_LISTS = ("Action", "NotAction", "Resource", "NotResource")


def lifecycle(noncurrent_days: int | None) -> str | None:
    """Return the lifecycle rule that removes old versions after their days; None without days."""
    if noncurrent_days is None:
        return None
    rule = {
        "ID": "old-versions",
        "Status": "Enabled",
        "Filter": {"Prefix": ""},
        "NoncurrentVersionExpiration": {"NoncurrentDays": noncurrent_days},
    }
    return lifecycle_text([rule])


def lifecycle_text(rules: list[dict[str, Any]]) -> str | None:
    """Return lifecycle rules as JSON; None if there are none."""
    if not rules:
        return None
    return json.dumps(sorted((_rule(rule) for rule in rules), key=lambda rule: str(rule.get("ID"))), sort_keys=True)


def _rule(rule: dict[str, Any]) -> dict[str, Any]:
    normalized = {key: value for key, value in rule.items() if key != "Prefix"}
    rule_filter = cast(dict[str, Any], rule.get("Filter") or {})
    # Stores return a rule for the whole bucket with an empty filter, an empty prefix, or neither.
    if not rule_filter or set(rule_filter) == {"Prefix"}:
        normalized["Filter"] = {"Prefix": rule_filter.get("Prefix") or rule.get("Prefix") or ""}
    return normalized


def parse_rules(text: str) -> list[dict[str, Any]]:
    """Return the rules of a text made by `lifecycle_text`."""
    return cast(list[dict[str, Any]], json.loads(text))


def tls_only(bucket: str) -> str:
    """Return the bucket policy that denies requests without TLS."""
    arn = bucket_arn(bucket, "")
    statement = {
        "Sid": "TlsOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return policy_text(json.dumps({"Version": "2012-10-17", "Statement": [statement]}))


def policy_text(document: str) -> str:
    """Return a bucket policy as JSON that does not depend on the spelling of lists, principals and values."""
    policy = cast(dict[str, Any], json.loads(document))
    statements = policy.get("Statement", [])
    plain = [_statement(statement) for statement in _as_list(statements)]
    return json.dumps(
        {"Statement": sorted(plain, key=lambda statement: json.dumps(statement, sort_keys=True))}, sort_keys=True
    )


def _statement(statement: dict[str, Any]) -> dict[str, Any]:
    normalized = {key: value for key, value in statement.items() if value not in (None, "", {}, [])}
    for key in _LISTS:
        if key in normalized:
            normalized[key] = sorted(_as_list(normalized[key]))
    if "Principal" in normalized:
        principal = normalized["Principal"]
        by_kind = cast(dict[str, Any], principal) if isinstance(principal, dict) else {"AWS": principal}
        normalized["Principal"] = {kind: sorted(_as_list(names)) for kind, names in by_kind.items()}
    conditions = cast(dict[str, dict[str, Any]], normalized.get("Condition") or {})
    for operator, tests in conditions.items():
        conditions[operator] = {key: sorted(map(_text, _as_list(tests[key]))) for key in tests}
    return normalized


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _as_list(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else [value]
