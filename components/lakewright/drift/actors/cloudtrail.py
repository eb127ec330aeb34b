"""Records of AWS CloudTrail: the event history, or the log files in the bucket of a trail."""

# boto3 has no types; values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from lakewright_spark.times import parse_json_time

from lakewright.credentials.aws_session import open_aws_session
from lakewright.drift.actors.cloudtrail_events import is_cause, is_known, read_actor, resource_name
from lakewright.drift.actors.source import AuditSourceError, DriftedObject
from lakewright.drift.model import Actor
from lakewright.validation.documents import as_list, as_mapping

_GLOBAL_REGION = "us-east-1"
_IAM_REGIONS = (
    ("us-gov-", "us-gov-west-1"),
    ("cn-", "cn-north-1"),
    ("us-iso-", "us-iso-east-1"),
    ("us-isob-", "us-isob-east-1"),
)
"""Region whose event history has the events of IAM, by how the regions of a partition begin; else `us-east-1`."""
_DELIVERY = timedelta(hours=1)
"""A log file may have events of before the day in its key."""
_MOST_DAYS = 90
"""Days of records that are read at most, as the event history keeps them."""


@dataclass(frozen=True)
class AwsAccess:
    """How records are read."""

    profile: str | None = None
    region: str | None = None
    shared_credentials_file: Path | None = None
    endpoint: str | None = None
    """Endpoint of a sandbox instead of AWS."""


class LookupSource:
    """The event history of an account, one request per object that differs: AWS allows two requests a second."""

    def __init__(self, access: AwsAccess) -> None:
        """Read the history of an account."""
        self._access = access
        self._clients: dict[str, Any] = {}

    def actors(self, objects: Sequence[DriftedObject]) -> Iterable[tuple[DriftedObject, Actor]]:
        """Yield the actor of each event that made a difference."""
        looked_up: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
        for drifted in filter(is_known, objects):
            lookup_key = find_region(drifted, self._access), resource_name(drifted)
            if lookup_key not in looked_up:
                looked_up[lookup_key] = [*self._events(*lookup_key, drifted.resource.updated)]
            yield from _match_events(drifted, looked_up[lookup_key])

    def _events(self, region: str, name: str, since: str) -> Iterator[Mapping[str, Any]]:
        with _explained(f"the event history of CloudTrail in {region}"):
            client = self._clients.setdefault(region, _client(self._access, "cloudtrail", region))
            pages = client.get_paginator("lookup_events").paginate(
                LookupAttributes=[{"AttributeKey": "ResourceName", "AttributeValue": name}], StartTime=_start(since)
            )
            for page in pages:
                for event in map(as_mapping, as_list(page.get("Events"))):
                    yield _parse_json(str(event.get("CloudTrailEvent")))


class TrailBucketSource:
    """The log files of a trail: `PREFIX/AWSLogs/ACCOUNT/CloudTrail/REGION/YYYY/MM/DD/NAME.json.gz`."""

    def __init__(self, access: AwsAccess, bucket: str, prefix: str = "") -> None:
        """Read a bucket, whose trail has a prefix before `AWSLogs/`."""
        self._access, self._bucket, self._prefix = access, bucket, prefix.strip("/")

    def actors(self, objects: Sequence[DriftedObject]) -> Iterable[tuple[DriftedObject, Actor]]:
        """Yield the actor of each event that made a difference."""
        known_objects = [*filter(is_known, objects)]
        if not known_objects:
            return
        since = min(_start(drifted.resource.updated) for drifted in known_objects)
        with _explained(f"the bucket {self._bucket} of CloudTrail"):
            for event in self._events(since):
                for drifted in known_objects:
                    yield from _match_events(drifted, [event])

    def _events(self, since: datetime) -> Iterator[Mapping[str, Any]]:
        s3 = _client(self._access, "s3", self._access.region or _GLOBAL_REGION)
        prefix = f"{self._prefix}/" if self._prefix else ""
        for trail in self._trails(s3, f"{prefix}AWSLogs/"):
            for day in _days(since):
                pages = self._list(s3, f"{trail}{day:%Y/%m/%d}/")
                for key in (str(item["Key"]) for page in pages for item in as_list(page.get("Contents"))):
                    if key.endswith(".json.gz"):
                        body = s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
                        yield from map(as_mapping, as_list(_parse_json(gzip.decompress(body)).get("Records")))

    def _trails(self, s3: Any, prefix: str) -> Iterator[str]:
        """Yield the folders of the regions of all accounts, also of an organization's trail."""
        for folder in self._folders(s3, prefix):
            if folder.endswith("/CloudTrail/"):
                yield from self._folders(s3, folder)
            elif folder.count("/") - prefix.count("/") == 1:
                yield from self._trails(s3, folder)

    def _folders(self, s3: Any, prefix: str) -> list[str]:
        pages = self._list(s3, prefix, Delimiter="/")
        return [str(item["Prefix"]) for page in pages for item in as_list(page.get("CommonPrefixes"))]

    def _list(self, s3: Any, prefix: str, **options: str) -> Iterator[Mapping[str, Any]]:
        pages = s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix, **options)
        return map(as_mapping, pages)


def _match_events(drifted: DriftedObject, events: Iterable[Mapping[str, Any]]) -> Iterator[tuple[DriftedObject, Actor]]:
    for event in events:
        if is_cause(event, drifted) and (actor := read_actor(event)) is not None:
            yield drifted, actor


def find_region(drifted: DriftedObject, access: AwsAccess) -> str:
    """Return the region whose event history has the changes of an object."""
    resource = drifted.resource
    settings = resource.provider.inputs if resource.provider else {}
    regions = (resource.state.outputs.get("region"), resource.state.inputs.get("region"), settings.get("region"))
    region = next((value for value in (*regions, access.region) if isinstance(value, str) and value), _GLOBAL_REGION)
    if not drifted.difference.type.startswith("aws:iam/"):
        return region
    return next((iam_region for beginning, iam_region in _IAM_REGIONS if region.startswith(beginning)), _GLOBAL_REGION)


def _client(access: AwsAccess, service: str, region: str) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    config = Config(
        connect_timeout=5,
        read_timeout=30,
        retries={"mode": "standard", "total_max_attempts": 5},
        s3={"addressing_style": "path"} if access.endpoint else {},
    )
    session = open_aws_session(access.profile, region, access.shared_credentials_file)
    return session.client(service, region_name=region, endpoint_url=access.endpoint, config=config)


class _explained:  # noqa: N801 - used as a function
    """Raise errors of AWS and of log files as AuditSourceError."""

    def __init__(self, title: str) -> None:
        self._what = title

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _traceback: object) -> None:
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

        if isinstance(error, BotoCoreError | ClientError | OSError | EOFError | ValueError):
            raise AuditSourceError(f"{self._what} cannot be read: {' '.join(str(error).split())}") from error


def _start(since: str) -> datetime:
    """Return the time from which records are read."""
    earliest = datetime.now(UTC) - timedelta(days=_MOST_DAYS)
    return max(parse_json_time(since) or earliest, earliest)


def _days(since: datetime) -> Iterator[date]:
    day, last = (since - _DELIVERY).astimezone(UTC).date(), (datetime.now(UTC) + _DELIVERY).date()
    while day <= last:
        yield day
        day += timedelta(days=1)


def _parse_json(text: str | bytes) -> Mapping[str, Any]:
    return as_mapping(json.loads(text))
