"""Lifecycle of objects under a warehouse's prefix, and the rules of a bucket that follow from it. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Any

from pydantic import Field

from lakewright.validation.strict_model import StrictModel

Days = Annotated[int, Field(ge=1, le=3650)]


class PrefixLifecycle(StrictModel):
    """Expiration of objects under a warehouse's prefix, and their move to cheaper storage."""

    abort_incomplete_uploads_days: Days | None = None
    """Default: that of the storage."""
    noncurrent_version_days: Days | None = None
    """How long deleted and overwritten objects can be restored. Default: that of the storage."""
    intelligent_tiering_days: Annotated[int, Field(ge=0, le=3650)] | None = None
    """Days after which objects move to S3 Intelligent-Tiering. Without it, objects remain in S3 Standard."""


def lifecycle_rules(
    uploads_days: int, version_days: int, by_prefix: Mapping[str, PrefixLifecycle | None]
) -> list[dict[str, Any]]:
    """Return the lifecycle rules of a bucket.

    S3 applies the earliest expiration of all rules that match an object, so that a rule for the whole bucket would
    override a longer expiration of a prefix. With a lifecycle on any prefix, each prefix therefore has rules of its
    own.

    Args:
        uploads_days: Days after which incomplete uploads are removed.
        version_days: Days after which deleted and overwritten objects are removed.
        by_prefix: Key prefixes of the bucket without slashes at their ends, each with its lifecycle or None.
    """
    if not any(by_prefix.values()):
        return _rules("", "", uploads_days, version_days)
    rules: list[dict[str, Any]] = []
    for prefix, prefix_lifecycle in sorted(by_prefix.items()):
        lifecycle = prefix_lifecycle or PrefixLifecycle()
        rules += _rules(
            f"{prefix}/",
            f":{prefix}",
            lifecycle.abort_incomplete_uploads_days or uploads_days,
            lifecycle.noncurrent_version_days or version_days,
        )
        if lifecycle.intelligent_tiering_days is not None:
            transition = {"days": lifecycle.intelligent_tiering_days, "storage_class": "INTELLIGENT_TIERING"}
            rules.append(_rule(f"tiering:{prefix}", f"{prefix}/", {"transitions": [transition]}))
    return rules


def _rules(prefix: str, suffix: str, uploads_days: int, version_days: int) -> list[dict[str, Any]]:
    return [
        _rule(
            f"incomplete-uploads{suffix}",
            prefix,
            {"abort_incomplete_multipart_upload": {"days_after_initiation": uploads_days}},
        ),
        _rule(
            f"old-versions{suffix}",
            prefix,
            {
                "noncurrent_version_expiration": {"noncurrent_days": version_days},
                "expiration": {"expired_object_delete_marker": True},
            },
        ),
    ]


def _rule(name: str, prefix: str, action: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": _rule_id(name), "status": "Enabled", "filter": {"prefix": prefix}, **action}


def _rule_id(name: str) -> str:
    """Return a rule's ID: S3 allows 255 characters, and prefixes may be longer."""
    if len(name) <= 255:
        return name
    return f"{name[:238]}-{sha256(name.encode()).hexdigest()[:16]}"
