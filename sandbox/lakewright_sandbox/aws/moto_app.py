"""Moto as one WSGI app for one account, with its own access checks out of the way: the gate in front of it decides."""

import os

from lakewright_sandbox.aws import ACCOUNT_ID

# Moto reads these when it is first imported. One account, path-style buckets alone: gate and moto must never
# disagree about which account and which bucket a request is for.
os.environ["MOTO_ACCOUNT_ID"] = ACCOUNT_ID
os.environ["S3_IGNORE_SUBDOMAIN_BUCKETNAME"] = "true"
os.environ["MOTO_ALLOW_NONEXISTENT_REGION"] = "true"

from moto.iam.access_control import PermissionResult
from moto.iam.models import IAMBackend, iam_backends
from moto.kms.models import KmsBackend, kms_backends
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import FakeBucket, FakeDeleteMarker, S3Backend, s3_backends

from lakewright_sandbox.aws.server import WsgiApp


def create_app() -> WsgiApp:
    """Moto's dispatcher. Must be behind the gate: by itself it lets everybody do everything."""

    # Moto evaluates bucket policies in its object operations, without principals and conditions: a policy that denies
    # insecure transport would deny everything. The gate has decided by the time moto sees a request.
    def permitted(_self: FakeBucket, _action: str, _resource: str) -> PermissionResult:
        return PermissionResult.PERMITTED

    FakeBucket.get_permission = permitted  # type: ignore[method-assign]

    # Moto disposes of all versions of a key when its bucket's versioning is suspended, but forgot that delete markers
    # are among them, and have no content to dispose of.
    def nothing(_self: FakeDeleteMarker) -> None:
        return None

    FakeDeleteMarker.dispose = nothing  # type: ignore[attr-defined]
    return DomainDispatcherApplication(create_backend_app)  # type: ignore[return-value]


def iam() -> IAMBackend:
    """The account's users, roles and policies."""
    return iam_backends[ACCOUNT_ID]["aws"]


def s3() -> S3Backend:
    """The account's buckets."""
    return s3_backends[ACCOUNT_ID]["aws"]


def kms(region: str) -> KmsBackend:
    """A region's encryption keys."""
    return kms_backends[ACCOUNT_ID][region]
