"""Validate storage: probes write, read and delete objects, and check the scope of vended credentials.

Each check has a name; a failed check is the response of a create or update, or a line of a dry run's report.
"""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.storage.access import AnyStorage, StorageAccess, WarehouseStorage
from lakewright_sandbox.lakekeeper.storage.object_store import ObjectStore, StorageError
from lakewright_sandbox.lakekeeper.storage.profiles import Credential, Profile, open_storage
from lakewright_sandbox.lakekeeper.storage.vending import CredentialVendor, session_policy

VENDING_CHECKS = ("vended-credentials-issued", "vended-credentials-read-write", "vended-credentials-scope-enforced")
STORAGE_CHECKS = ("storage-client-initialized", "lakekeeper-read-write", *VENDING_CHECKS, "cleanup")


@dataclass(frozen=True)
class StorageCheck:
    """The result of one check: passed, skipped with a reason, or failed with an error."""

    name: str
    millis: int | None = None
    skipped: str | None = None
    error: ApiError | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the check as reports contain it."""
        if self.skipped is not None:
            return {"name": self.name, "status": "skipped", "reason": self.skipped}
        report: dict[str, Any] = {"name": self.name, "status": "passed", "duration-ms": self.millis or 0}
        if self.error:
            failure = {"message": self.error.message, "type": self.error.kind, "code": _status(self.error)}
            report |= {"status": "failed", "error": failure}
        return report


def attempt(name: str, action: Callable[[], object]) -> StorageCheck:
    """Run one check; an `ApiError` makes it fail."""
    started = time.monotonic()
    try:
        action()
    except ApiError as error:
        return StorageCheck(name, millis=_measure_milliseconds(started), error=error)
    return StorageCheck(name, millis=_measure_milliseconds(started))


def report(checks: Iterable[StorageCheck]) -> dict[str, Any]:
    """Return the report of a dry run."""
    checks = list(checks)
    return {"valid": not any(check.error for check in checks), "checks": [check.to_json() for check in checks]}


def raise_failed(checks: Iterable[StorageCheck], *, names_checks: bool) -> None:
    """Raise the first failure, with later failures in its stack; with `names_checks` the message names the check."""
    failed = [(check.name, check.error) for check in checks if check.error]
    if not failed:
        return
    (name, first), later_failures = failed[0], failed[1:]
    stack = ["IO Operation Failed during validation."] if isinstance(first, StorageError) else []
    if not names_checks:
        raise ApiError(_status(first), first.kind, first.message, *stack)
    stack += [f"Also failed [{other}]: {error.message}" for other, error in later_failures]
    raise ApiError(_status(first), first.kind, f"Storage validation failed [{name}]: {first.message}", *stack)


def _status(error: ApiError) -> int:
    """Return the status within a validation, where failures of the storage are the request's fault."""
    return 400 if isinstance(error, StorageError) else error.status


class StorageProbe:
    """Try a storage as the server and its clients would use it."""

    def __init__(self, access: StorageAccess, vendor: CredentialVendor) -> None:
        """Probe by this access and with these vended credentials."""
        self._access = access
        self._vendor = vendor

    def checks(self, profile: Profile, credential: Credential | None) -> list[StorageCheck]:
        """Return the result of every check."""
        opened_stores: list[tuple[AnyStorage, ObjectStore]] = []

        def initialize() -> None:
            storage = open_storage(profile, credential, self._access.settings)
            opened_stores.append((storage, self._access.objects(storage)))

        opened = attempt(STORAGE_CHECKS[0], initialize)
        if opened.error:
            reason = "The storage client could not be initialized."
            return [opened, *(StorageCheck(name, skipped=reason) for name in STORAGE_CHECKS[1:])]
        storage, objects = opened_stores[0]
        location = f"{storage.profile.base_location}/{new_id()}"
        checks = [opened, attempt("lakekeeper-read-write", lambda: _read_write(objects, location))]
        checks += self._check_vending(storage, location)
        checks.append(attempt("cleanup", lambda: _clean(objects, location)))
        return checks

    def _check_vending(self, storage: AnyStorage, location: str) -> list[StorageCheck]:
        issued, usable, scoped = VENDING_CHECKS
        if not storage.vends_credentials:
            reason = "STS is disabled in the storage profile."
            return [StorageCheck(name, skipped=reason) for name in VENDING_CHECKS]
        inner = f"{location}/vended-test"
        vended_stores: list[ObjectStore] = []
        checks = [attempt(issued, lambda: vended_stores.append(self._open_vended(storage, inner)))]
        if not vended_stores:
            reason = "No short-term credential was issued."
            return [*checks, StorageCheck(usable, skipped=reason), StorageCheck(scoped, skipped=reason)]
        vended = vended_stores[0]
        checks.append(attempt(usable, lambda: _read_write(vended, inner)))
        if checks[-1].error:
            return [*checks, StorageCheck(scoped, skipped="The short-term credential could not be used.")]
        return [*checks, attempt(scoped, lambda: _check_scope(vended, location))]

    def _open_vended(self, storage: AnyStorage, location: str) -> ObjectStore:
        """Return a location with a new short-term credential."""
        if not isinstance(storage, WarehouseStorage):
            return storage.vend(self._access.http, location, writable=True).objects
        base, policy = self._access.find_vending_keys(storage), session_policy(storage.profile, location)
        return self._access.s3_objects(storage, self._vendor.issue(storage, base, policy), vended=True)


def _read_write(objects: ObjectStore, location: str) -> None:
    uri, probe = f"{location}/metadata/test", gzip.compress(b"test")
    objects.write(uri, probe)
    if objects.read(uri) != probe:
        raise StorageError("Unexpected", f"IO error at `{uri}`: the read bytes differ from the written bytes")
    objects.delete(uri)


def _check_scope(vended: ObjectStore, location: str) -> None:
    uri = f"{location}/metadata/outside"
    try:
        vended.write(uri, b"outside")
    except StorageError:
        return
    message = f"The short-term credential could write to `{uri}`, outside of its scope: STS ignores session policies."
    raise ApiError(412, "ShortTermCredentialError", message)


def _clean(objects: ObjectStore, location: str) -> None:
    objects.delete_under(location)


def _measure_milliseconds(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
