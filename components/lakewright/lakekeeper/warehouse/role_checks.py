"""Prove that a tenant's role is limited: it needs its external ID, and cannot write outside the warehouse's prefix.

The server tries each variation of the storage as it validates a new warehouse: it assumes the role, and writes, reads
and deletes a probe object. Nothing is made, because the server refuses a warehouse that overlaps an existing
warehouse; only the variation with a neighboring prefix would be made, and it is deleted at once.

Source: Lakekeeper 0.11 to 0.14, `create_warehouse`: it validates the storage and looks for overlaps in parallel, and
reports a failed validation first.
"""

import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from lakewright.errors import LakewrightError
from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, RefusedError
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.preflight.report import Check
from lakewright.lakekeeper.storage.credentials import SystemIdentity, credential_request
from lakewright.lakekeeper.storage.profiles import S3Profile, profile_request
from lakewright.lakekeeper.warehouse.changes import is_not_yet

OVERLAP = "CreateWarehouseStorageProfileOverlap"
OWN_RULE = "Misconfiguration"
"""Type of the refusal by a server that uses no role without an external ID; it does not ask STS."""

NEIGHBOR = "-lakewright-proof"
"""Suffix of the neighboring prefix: a policy for `PREFIX*` in place of `PREFIX/*` would allow it."""


class Trial(Enum):
    """Result of trying a variation of the storage."""

    WORKS = "works"
    DENIED = "denied"
    NOT_TRIED = "not tried"


class _TooOpenError(LakewrightError):
    def __init__(self, checks: list[Check]) -> None:
        self.checks = checks


@dataclass(frozen=True)
class RoleUse:
    """A warehouse on a tenant's role."""

    client: Client
    project_id: str
    warehouse: str
    storage: S3Profile
    credential: SystemIdentity

    @property
    def title(self) -> str:
        """Role and warehouse, for messages."""
        return f"role {self.storage.assume_role_arn} of warehouse `{self.warehouse}`"


def role_checks(use: RoleUse) -> list[Check]:
    """Return a check for each limit of the role. IAM applies changes late, so open limits are tried again."""

    def prove() -> list[Check]:
        checks = [*_checks(use)]
        if not any(check.status == "failed" for check in checks):
            return checks
        if not _validates(use):
            reason = "not tried: the server validates no storage (LAKEKEEPER__SKIP_STORAGE_VALIDATION)"
            return [Check(name=check.name, status="skipped", reason=reason) for check in checks]
        raise _TooOpenError(checks)

    try:
        return retry_until(
            prove, lambda error: isinstance(error, _TooOpenError), seconds=settings.role_propagation(), every=1
        )
    except _TooOpenError as error:
        return error.checks


def _validates(use: RoleUse) -> bool:
    """Return whether the server tries storage at all: with a role that does not exist, it must fail."""
    missing = f"{use.storage.assume_role_arn}-{uuid.uuid4().hex[:8]}"
    profile = use.storage.model_copy(update={"assume_role_arn": missing, "sts_role_arn": None})
    return _try(use, profile, use.credential.external_id)[0] is not Trial.WORKS


def _checks(use: RoleUse) -> Iterator[Check]:
    role, prefix = use.storage.assume_role_arn, use.storage.key_prefix
    role_profile = use.storage.model_copy(
        update={"sts_enabled": False, "sts_role_arn": None, "remote_signing_enabled": True}
    )
    trial, reason = _try(use, role_profile, use.credential.external_id)
    if trial is not Trial.WORKS:
        # Without this, a refusal of the variations would prove nothing.
        yield Check(name="role", status="failed", reason=f"Lakekeeper cannot use {role}: {reason}")
        return
    yield Check(name="role", status="passed", reason=f"Lakekeeper assumes {role} with its external ID")
    yield _expect_denied(
        "other external ID",
        lambda: _try(use, role_profile, str(uuid.uuid4())),
        works=f"{role} can be assumed with another external ID. Let its trust policy require this stack's external ID.",
        denied=f"{role} cannot be assumed with another external ID",
    )
    yield _expect_denied(
        "no external ID",
        lambda: _try(use, role_profile, None),
        works=f"{role} can be assumed without an external ID. Let its trust policy require this stack's external ID.",
        denied=f"{role} cannot be assumed without an external ID",
    )
    for name, other in _other_prefixes(prefix):
        location = f"s3://{use.storage.bucket}/{other}".rstrip("/")
        profile = role_profile.model_copy(update={"key_prefix": other})
        yield _expect_denied(
            name,
            lambda profile=profile: _try(use, profile, use.credential.external_id),
            works=f"{role} can write to {location}/. Limit its permissions to {prefix}/*.",
            denied=f"{role} cannot write to {location}/",
        )


def _other_prefixes(prefix: str) -> Iterator[tuple[str, str]]:
    """Yield prefixes that the role must not reach: the bucket's root, each folder above, and a neighbor."""
    yield "bucket root", ""
    parts = prefix.split("/")
    for depth in range(1, len(parts)):
        yield "folder above", "/".join(parts[:depth])
    yield "neighboring prefix", prefix + NEIGHBOR


def _expect_denied(name: str, attempt: Callable[[], tuple[Trial, str]], *, works: str, denied: str) -> Check:
    trial, reason = attempt()
    if trial is Trial.NOT_TRIED:
        return Check(name=name, status="skipped", reason=f"not tried: {reason}")
    return Check(
        name=name,
        status="failed" if trial is Trial.WORKS else "passed",
        reason=works if trial is Trial.WORKS else denied,
    )


def _try(use: RoleUse, profile: S3Profile, external_id: str | None) -> tuple[Trial, str]:
    """Return whether the server can use a variation of the storage, and why not.

    Raises:
        RefusedError: The server refuses the request for a reason that says nothing about the role.
    """
    name = f"lakewright-proof-{use.warehouse}"
    _remove_leftover(use, name, profile)
    credential = SystemIdentity(type="aws-system-identity", external_id=external_id)
    # A server may reuse a session of the same profile and credential, which the role no longer allows.
    profile = profile.model_copy(update={"sts_token_validity_seconds": 900 + secrets.randbelow(2700)})
    body = {
        "warehouse-name": name,
        "storage-profile": profile_request(profile),
        "storage-credential": credential_request(credential, lambda _: ""),
        "delete-profile": {"type": "hard"},
    }
    try:
        warehouse = warehouses.create(use.client, use.project_id, body)
    except AlreadyExistsError as exists:
        if exists.kind != OVERLAP:
            raise
        return Trial.WORKS, ""
    except RefusedError as refused:
        if refused.kind == OWN_RULE:
            return Trial.NOT_TRIED, "the server uses no role without an external ID"
        if not is_not_yet(refused):
            raise
        return Trial.DENIED, str(refused)
    warehouses.delete(use.client, warehouses.read_id(warehouse))
    return Trial.WORKS, ""


def _remove_leftover(use: RoleUse, name: str, profile: S3Profile) -> None:
    """Delete the warehouse that a killed run left at the neighboring prefix. It is empty, else the server refuses."""
    if not profile.key_prefix.endswith(NEIGHBOR):
        return
    remaining = warehouses.find_by_name(use.client, use.project_id, name)
    if remaining is not None and remaining["storage-profile"].get("key-prefix") == profile.key_prefix:
        warehouses.delete(use.client, warehouses.read_id(remaining))
