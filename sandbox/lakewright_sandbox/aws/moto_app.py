"""Moto as one WSGI application for one account, without its own access checks: the proxy in front of it decides."""

import os
from typing import Any
from uuid import uuid4

from lakewright_sandbox.aws import ACCOUNT_ID

# Moto reads these when it is first imported. One account and path-style buckets alone: proxy and moto must always
# agree about the account and the bucket of a request.
os.environ["MOTO_ACCOUNT_ID"] = ACCOUNT_ID
os.environ["S3_IGNORE_SUBDOMAIN_BUCKETNAME"] = "true"
os.environ["MOTO_ALLOW_NONEXISTENT_REGION"] = "true"

from moto.iam.access_control import PermissionResult
from moto.iam.models import IAMBackend, iam_backends
from moto.kms.models import KmsBackend, kms_backends
from moto.moto_server.werkzeug_app import (  # pyright: ignore[reportMissingTypeStubs]
    DomainDispatcherApplication,
    create_backend_app,
)
from moto.organizations.models import OrganizationsBackend, organizations_backends
from moto.s3.models import FakeBucket, FakeDeleteMarker, FakeKey, S3Backend, s3_backends

from lakewright_sandbox.aws.server import WsgiApp
from lakewright_sandbox.policies.callers import Caller
from lakewright_sandbox.policies.document import parse
from lakewright_sandbox.policies.evaluation import ActionRequest, IdentityPolicies, decide

_LOGGING = "logging.s3.amazonaws.com"


def create_app() -> WsgiApp:
    """Return moto's dispatcher. It must be behind the proxy: by itself it allows everything."""

    # Moto evaluates bucket policies in its object operations, without principals and conditions: a policy that denies
    # insecure transport would deny everything. The proxy has decided by the time moto sees a request.
    def permit(_self: FakeBucket, _action: str, _resource: str) -> PermissionResult:
        return PermissionResult.PERMITTED

    FakeBucket.get_permission = permit  # type: ignore[method-assign]

    # Moto disposes of all versions of a key when its bucket's versioning is suspended, delete markers included, which
    # lack the method because they have no content.
    def return_nothing(_self: FakeDeleteMarker) -> None:
        return None

    FakeDeleteMarker.dispose = return_nothing  # type: ignore[attr-defined]
    _hide_digests_of_encrypted_objects()
    _check_log_delivery()
    return DomainDispatcherApplication(create_backend_app)  # type: ignore[return-value]


def _hide_digests_of_encrypted_objects() -> None:
    """Give objects under SSE-KMS an ETag that is no MD5 sum, as in S3 (API Reference, "Object")."""
    find_etag = FakeKey.etag.fget
    assert find_etag is not None

    def choose_etag(self: FakeKey) -> str:
        state = vars(self)
        if state["_etag"] is None and (self.encryption or "").startswith("aws:kms"):
            state["_etag"] = uuid4().hex
        return find_etag(self)

    FakeKey.etag = property(choose_etag)  # type: ignore[assignment]


def _check_log_delivery() -> None:
    """Let moto deliver access logs only where the target's policy allows the logging service to write."""

    def check_log_target(self: FakeBucket, target_bucket: FakeBucket, target_prefix: str | None) -> bool:
        return _may_deliver(self, target_bucket, target_prefix or "")

    deliver = S3Backend.log_incoming_request

    def deliver_log(self: S3Backend, request: Any, bucket_name: str) -> None:
        source = self.buckets.get(bucket_name)
        target = self.buckets.get(source.logging.get("TargetBucket", "")) if source else None
        if source and target and _may_deliver(source, target, source.logging.get("TargetPrefix") or ""):
            deliver(self, request, bucket_name)

    # Moto looks for one spelling of one statement.
    FakeBucket._log_permissions_enabled_policy = check_log_target  # type: ignore[method-assign]
    S3Backend.log_incoming_request = deliver_log  # type: ignore[method-assign]


def _may_deliver(source: FakeBucket, target: FakeBucket, prefix: str) -> bool:
    if target.policy is None:
        return False
    service = Caller(
        "service",
        arn=_LOGGING,
        identity_arn=_LOGGING,
        context={
            "aws:principalisawsservice": ["true"],
            "aws:principalservicename": [_LOGGING],
            "aws:sourcearn": [f"arn:aws:s3:::{source.name}"],
            "aws:sourceaccount": [ACCOUNT_ID],
            "aws:securetransport": ["true"],
        },
    )
    log = f"arn:aws:s3:::{target.name}/{prefix}2026-01-01-00-00-00-0123456789ABCDEF"
    context = {"aws:resourceaccount": [ACCOUNT_ID]}
    request = ActionRequest("s3:PutObject", log, context)
    return decide(service, IdentityPolicies(), request, parse(target.policy.decode(), "resource")).allowed


def iam() -> IAMBackend:
    """Return the account's users, roles and policies."""
    return iam_backends[ACCOUNT_ID]["aws"]


def s3() -> S3Backend:
    """Return the account's buckets."""
    return s3_backends[ACCOUNT_ID]["aws"]


def kms(region: str) -> KmsBackend:
    """Return the encryption keys of a region."""
    return kms_backends[ACCOUNT_ID][region]


def organizations() -> OrganizationsBackend:
    """Return the organization of the account, and its policies."""
    return organizations_backends[ACCOUNT_ID]["aws"]
