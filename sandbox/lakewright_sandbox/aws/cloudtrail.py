"""The event history: management events of S3, IAM and KMS from requests that change something, and LookupEvents.

Formats follow "CloudTrail record contents" and the API reference of LookupEvents. AWS delivers events within minutes;
here they are visible at once.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from lakewright_sandbox.typed.json_values import is_object

_KEPT = 20_000
"""Events in memory; the oldest are dropped."""
_PAGE = 50
"""Events in a response, as by AWS."""
_RESOURCES = {"bucketName": "AWS::S3::Bucket", "roleName": "AWS::IAM::Role", "keyId": "AWS::KMS::Key"} | {
    "aliasName": "AWS::KMS::Alias",
    "policyName": "AWS::IAM::Policy",
}
_SETTINGS = {
    "encryption": "BucketEncryption",
    "lifecycle": "BucketLifecycle",
    "logging": "BucketLogging",
    "ownershipControls": "BucketOwnershipControls",
    "policy": "BucketPolicy",
    "publicAccessBlock": "BucketPublicAccessBlock",
    "tagging": "BucketTagging",
    "versioning": "BucketVersioning",
}
"""S3's sub-resources of a bucket, with the end of their events' names."""
_READING = ("Get", "List", "Simulate", "Generate", "Describe", "Encrypt", "Decrypt", "ReEncrypt")
_IAM_PARAMETERS = ("RoleName", "PolicyName", "UserName", "Description", "MaxSessionDuration", "PermissionsBoundary")
_KMS_PARAMETERS = ("KeyId", "AliasName", "TargetKeyId", "PendingWindowInDays", "Description")


@dataclass(frozen=True)
class TrailPrincipal:
    """The identity of a request."""

    kind: str
    """`IAMUser`, `AssumedRole` or `Anonymous`."""
    arn: str
    account: str


@dataclass(frozen=True)
class ManagementCall:
    """A call that changes something."""

    service: str
    name: str
    parameters: Mapping[str, Any]
    region: str
    error: str = ""


class Trail:
    """The events of a process, and the file that they are appended to. Thread-safe."""

    def __init__(self, file: Path | None = None) -> None:
        """Keep events in memory, and optionally in a file."""
        self._file = file
        self._lock = threading.Lock()
        self._events: deque[dict[str, Any]] = deque(maxlen=_KEPT)

    def record(self, call: ManagementCall, principal: TrailPrincipal, at: datetime, address: str) -> None:
        """Add the event of a call."""
        event: dict[str, Any] = {
            "eventVersion": "1.11",
            "userIdentity": {
                "type": principal.kind,
                "arn": principal.arn,
                "accountId": principal.account,
                "userName": principal.arn.rpartition("/")[2],
            },
            "eventTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "eventSource": f"{call.service}.amazonaws.com",
            "eventName": call.name,
            "awsRegion": "us-east-1" if call.service == "iam" else call.region,
            "sourceIPAddress": address,
            "requestParameters": {**call.parameters},
            "responseElements": None,
            "requestID": str(uuid4()),
            "eventID": str(uuid4()),
            "readOnly": False,
            "eventType": "AwsApiCall",
            "managementEvent": True,
            "recipientAccountId": principal.account,
            "eventCategory": "Management",
        }
        if call.error:
            event["errorCode"] = call.error
        with self._lock:
            self._events.appendleft(event)
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(event) + "\n")

    def lookup(self, request: Mapping[str, Any], region: str) -> dict[str, Any]:
        """Return the response of LookupEvents in a region: the newest events first."""
        attributes: list[dict[str, str]] = request.get("LookupAttributes") or []
        start, end = request.get("StartTime") or 0, request.get("EndTime") or float("inf")
        with self._lock:
            events = [*self._events]
        matching_events = [
            event
            for event in events
            if event["awsRegion"] == region
            and start <= _seconds(event) <= end
            and all(_has(event, item["AttributeKey"], item["AttributeValue"]) for item in attributes)
        ]
        first = int(request.get("NextToken") or 0)
        size = min(int(request.get("MaxResults") or _PAGE), _PAGE)
        more = {"NextToken": str(first + size)} if first + size < len(matching_events) else {}
        return {"Events": [_to_json(event) for event in matching_events[first : first + size]], **more}


def _seconds(event: Mapping[str, Any]) -> float:
    return datetime.fromisoformat(event["eventTime"]).timestamp()


def _resources(event: Mapping[str, Any]) -> list[dict[str, str]]:
    parameters: Mapping[str, Any] = event["requestParameters"]
    return [
        {"ResourceType": kind, "ResourceName": str(parameters[name])}
        for name, kind in _RESOURCES.items()
        if name in parameters
    ]


def _has(event: Mapping[str, Any], attribute: str, value: str) -> bool:
    event_keys = {"EventName": "eventName", "EventSource": "eventSource", "EventId": "eventID"}
    if attribute in event_keys:
        return event[event_keys[attribute]] == value
    if attribute == "Username":
        return event["userIdentity"]["userName"] == value
    if attribute == "ResourceName":
        return any(resource["ResourceName"] == value for resource in _resources(event))
    return attribute == "ResourceType" and any(resource["ResourceType"] == value for resource in _resources(event))


def _to_json(event: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "EventId": event["eventID"],
        "EventName": event["eventName"],
        "ReadOnly": "false",
        "EventTime": _seconds(event),
        "EventSource": event["eventSource"],
        "Username": event["userIdentity"]["userName"],
        "Resources": _resources(event),
        "CloudTrailEvent": json.dumps(event),
    }


def bucket_call(method: str, bucket: str, query: Mapping[str, str], region: str) -> ManagementCall | None:
    """Return the event of a request about a bucket itself; None if it reads."""
    verb = {"PUT": "Put", "DELETE": "Delete"}.get(method)
    if verb is None:
        return None
    setting = next((end for name, end in _SETTINGS.items() if name in query), None)
    plain = {"Put": "CreateBucket", "Delete": "DeleteBucket"}[verb]
    if setting is None and any(name for name in query if name != "x-id"):
        return None
    return ManagementCall("s3", f"{verb}{setting}" if setting else plain, {"bucketName": bucket}, region)


def iam_call(parameters: Mapping[str, str]) -> ManagementCall | None:
    """Return the event of a call of IAM; None if it reads."""
    action = parameters.get("Action", "")
    return None if action.startswith(_READING) else _call("iam", action, parameters, _IAM_PARAMETERS, "us-east-1")


def kms_call(operation: str, body: bytes, region: str) -> ManagementCall | None:
    """Return the event of a call of KMS; None if it reads or uses a key."""
    try:
        parameters: Any = json.loads(body or b"{}")
    except ValueError:
        return None
    if operation.startswith(_READING) or not is_object(parameters):
        return None
    return _call("kms", operation, parameters, _KMS_PARAMETERS, region)


def _call(
    service: str, name: str, parameters: Mapping[str, Any], recorded_keys: tuple[str, ...], region: str
) -> ManagementCall:
    recorded_parameters = {key[0].lower() + key[1:]: parameters[key] for key in recorded_keys if key in parameters}
    return ManagementCall(service, name, recorded_parameters, region)
