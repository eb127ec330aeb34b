"""Vended credentials of one table: STS AssumeRole with a session policy for the table's location."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from typing import Any

from lakewright_sandbox.lakekeeper.storage.access import SESSION_REUSE_SECONDS, Keys, StorageAccess, WarehouseStorage
from lakewright_sandbox.lakekeeper.storage.s3_profile import S3ProfileBody

READ_ACTIONS = ["s3:GetObject", "s3:GetObjectVersion"]
WRITE_ACTIONS = [
    *READ_ACTIONS,
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
]
MAX_CACHED = 10_000


def session_policy(profile: S3ProfileBody, location: str, *, writable: bool = True) -> str:
    """Return the inline policy of a vended session, compact, with wildcards in the location escaped."""
    bucket, _, key = location.rstrip("/").removeprefix("s3://").partition("/")
    folder = f"{_escape(key)}/*" if key else "*"
    statements: list[dict[str, Any]] = [
        {
            "Sid": "TableAccess",
            "Effect": "Allow",
            "Action": WRITE_ACTIONS if writable else READ_ACTIONS,
            "Resource": f"arn:aws:s3:::{bucket}/{folder}",
        },
        {
            "Sid": "ListBucketForFolder",
            "Effect": "Allow",
            "Action": "s3:ListBucket",
            "Resource": f"arn:aws:s3:::{bucket}",
            "Condition": {"StringLike": {"s3:prefix": folder}},
        },
        {
            "Sid": "GetBucketLocation",
            "Effect": "Allow",
            "Action": "s3:GetBucketLocation",
            "Resource": f"arn:aws:s3:::{bucket}",
        },
    ]
    if profile.aws_kms_key_arn:
        actions = ["kms:Decrypt", "kms:GenerateDataKey"]  # for readers too, as the server does
        statements.append(
            {"Sid": "KmsAccess", "Effect": "Allow", "Action": actions, "Resource": profile.aws_kms_key_arn}
        )
    document = {"Version": "2012-10-17", "Statement": statements}
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)  # as serde_json does


class CredentialVendor:
    """Vend credentials, and reuse them for a short time."""

    def __init__(self, access: StorageAccess) -> None:
        """Start without credentials."""
        self._access = access
        self._lock = threading.Lock()
        self._cache: OrderedDict[tuple[Any, ...], tuple[float, Keys]] = OrderedDict()

    def vend(self, storage: WarehouseStorage, location: str, *, writable: bool = True) -> Keys:
        """Return credentials for a location. Raises 412 `ShortTermCredentialError` if STS refuses."""
        base, policy = (
            self._access.find_vending_keys(storage),
            session_policy(storage.profile, location, writable=writable),
        )
        external_id = storage.credential.external_id if storage.credential else None
        name = (base, storage.profile.model_dump_json(), external_id, policy)
        with self._lock:
            until, keys = self._cache.get(name, (0.0, None))
        if keys is not None and until > time.monotonic():
            return keys
        keys = self.issue(storage, base, policy)
        with self._lock:
            self._cache[name] = (time.monotonic() + SESSION_REUSE_SECONDS, keys)
            while len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        return keys

    def issue(self, storage: WarehouseStorage, base: Keys | None, policy: str) -> Keys:
        """Return new credentials with a session policy."""
        role = storage.profile.vending_role
        return self._access.assume_role(storage, base, role=role, session="lakekeeper-sts", policy=policy)


def _escape(key: str) -> str:
    return key.replace("$", "${$}").replace("*", "${*}").replace("?", "${?}")
