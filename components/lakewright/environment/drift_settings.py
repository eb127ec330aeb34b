"""Settings of an environment about drift: its rules, and the records of who changed what."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from lakewright.names.types import BucketName, Region
from lakewright.spec.drift_rules import DriftRules
from lakewright.validation.strict_model import StrictModel


class LakekeeperLog(StrictModel):
    """The log of Lakekeeper, in which its audit events are by default."""

    lakekeeper_log: Path
    """File with a JSON object per line, as the server writes it; `.gz` is unpacked. `*` in the name stands for any
    text, for rotated files. A relative path starts at the environment's folder."""


class TrailBucket(StrictModel):
    """The bucket that a trail of CloudTrail delivers to."""

    bucket: BucketName
    prefix: str = ""
    """The trail's prefix, before `AWSLogs/`."""
    region: Region | None = None
    """Region of the bucket. Default: that of `aws`."""


class CloudTrailRecords(StrictModel):
    """Records of AWS CloudTrail."""

    cloudtrail: Literal["lookup"] | TrailBucket
    """`lookup`: the event history of the last 90 days, which needs no trail; else the bucket of a trail."""


AuditSetting = LakekeeperLog | CloudTrailRecords


class EnvironmentDrift(DriftRules):
    """Rules about drift in all stacks of an environment, and who changed what."""

    audit: Annotated[list[AuditSetting], Field(max_length=20)] = []
    """Records of changes, by which `lakewright drift` names who made a difference and when."""
