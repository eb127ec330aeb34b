"""Moto as one WSGI application for one account, without its own access checks: the proxy in front of it decides."""

import os

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
from moto.s3.models import FakeBucket, FakeDeleteMarker, S3Backend, s3_backends

from lakewright_sandbox.aws.server import WsgiApp


def create_app() -> WsgiApp:
    """Return moto's dispatcher. It must be behind the proxy: by itself it allows everything."""

    # Moto evaluates bucket policies in its object operations, without principals and conditions: a policy that denies
    # insecure transport would deny everything. The proxy has decided by the time moto sees a request.
    def permitted(_self: FakeBucket, _action: str, _resource: str) -> PermissionResult:
        return PermissionResult.PERMITTED

    FakeBucket.get_permission = permitted  # type: ignore[method-assign]

    # Moto disposes of all versions of a key when its bucket's versioning is suspended, delete markers included, which
    # lack the method because they have no content.
    def nothing(_self: FakeDeleteMarker) -> None:
        return None

    FakeDeleteMarker.dispose = nothing  # type: ignore[attr-defined]
    return DomainDispatcherApplication(create_backend_app)  # type: ignore[return-value]


def iam() -> IAMBackend:
    """Return the account's users, roles and policies."""
    return iam_backends[ACCOUNT_ID]["aws"]


def s3() -> S3Backend:
    """Return the account's buckets."""
    return s3_backends[ACCOUNT_ID]["aws"]


def kms(region: str) -> KmsBackend:
    """Return the encryption keys of a region."""
    return kms_backends[ACCOUNT_ID][region]
