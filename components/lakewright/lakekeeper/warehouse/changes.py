"""Change a warehouse in place: select the management calls that it needs, and make them in order."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from lakewright.http.retry import retry_until
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, LakekeeperError, RefusedError
from lakewright.lakekeeper.api.management import permissions, warehouses
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.diagnostics import warn
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.storage.credentials import credential_request
from lakewright.lakekeeper.warehouse.model import NEEDS_ACTIVE, WarehouseArgs, plain_changes, storage_request

T = TypeVar("T")

NOT_YET = frozenset({"ShortTermCredentialError", "PermissionDenied"})
"""Error types of a server that cannot assume or use a role. They are temporary while the role is new."""

PUT_WITHOUT_RESPONSE = "Unknown S3 error during write"
"""Text in the 400 `Unexpected` response when the server's first put got no response from S3.

With `assume_role_arn`, that put also calls STS, and the message does not contain a denial by STS. If S3 refuses the
put, the message says `S3 write failed` instead."""

NAME_CONSTRAINT = "unique_warehouse_name_in_project"
"""Text in the 503 response to a rename when the new name is taken."""


def list_needed_calls(live_args: WarehouseArgs, new: WarehouseArgs, *, resend: bool) -> set[str]:
    """Return the names of the calls that change one declaration into another.

    Args:
        live_args: The warehouse as it is.
        new: The warehouse as it is declared.
        resend: Whether to send the credential even if it has not changed.
    """
    changes = difference.list_changes(live_args, new)
    calls = difference.via(changes)
    # The diff marks a region as a replacement. Here the region changes in place.
    if any(change.path.startswith("storage.") for change in changes):
        calls |= {"storage"}
    return calls | ({"storage-credential"} if resend else set[str]())


@dataclass(frozen=True)
class Changes:
    """Calls to one warehouse. `fresh_role` retries storage calls while a new role is not usable yet."""

    client: Client
    warehouse_id: str
    new: WarehouseArgs
    secret: Callable[[str], str]
    fresh_role: bool

    def make(self, calls: set[str], *, active: bool) -> None:
        """Make the calls. Activate an inactive warehouse first if a call needs it.

        A warehouse that is inactive before and declared as inactive is inactive after a refused call, too.
        """
        is_woken = not active and bool(calls & NEEDS_ACTIVE)
        if "rename" in calls:
            self._refuse_taken_name()
        if is_woken:
            warehouses.activate(self.client, self.warehouse_id)
        try:
            self._send(calls)
        except BaseException:
            if is_woken and not self.new.active:
                self._deactivate_again()
            raise
        if (active or is_woken) and not self.new.active:
            warehouses.deactivate(self.client, self.warehouse_id)
        if self.new.active and not active and not is_woken:
            warehouses.activate(self.client, self.warehouse_id)

    def _deactivate_again(self) -> None:
        """Deactivate the warehouse after a refused call, whose error remains the error of the update."""
        try:
            warehouses.deactivate(self.client, self.warehouse_id)
        except LakekeeperError as error:
            warn(f"warehouse {self.warehouse_id} was activated for the update and is still active: {error}")

    def _send(self, calls: set[str]) -> None:
        """Make all calls except for activation and deactivation."""
        if "rename" in calls:
            self._rename()
        if "storage" in calls:  # also sends the credential
            self._storage("storage", storage_request(self.new, self.secret))
        elif "storage-credential" in calls:
            credential = credential_request(self.new.credential, self.secret) if self.new.credential else None
            self._storage("storage-credential", {"new-storage-credential": credential})
        for call, body in plain_changes(self.new).items():
            if call in calls:
                self._change(call, body)
        if "managed-access" in calls:
            permissions.set_warehouse_access(self.client, self.warehouse_id, managed=bool(self.new.managed_access))

    def _change(self, change: str, body: dict[str, Any]) -> None:
        warehouses.change(self.client, self.warehouse_id, change, body)

    def _storage(self, change: str, body: dict[str, Any]) -> None:
        patiently(
            lambda: warehouses.change_storage(self.client, self.warehouse_id, change, body), fresh_role=self.fresh_role
        )

    def _refuse_taken_name(self) -> None:
        new = self.new
        taken = warehouses.find_by_name(self.client, new.project_id, new.name)
        if taken and warehouses.read_id(taken) != self.warehouse_id:
            raise NotOwnedError(
                f"warehouse {self.warehouse_id} at {self.client.endpoint} cannot be named `{new.name}`: warehouse"
                f" {warehouses.read_id(taken)} of project {new.project_id} has that name. Choose another."
            )

    def _rename(self) -> None:
        new = self.new
        try:
            self._change("rename", {"new-name": new.name})
        except RefusedError as refused:
            if NAME_CONSTRAINT not in str(refused):
                raise
            unlisted = self.client.server().unlisted or "it was created a moment ago"
            raise NotOwnedError(
                f"warehouse {self.warehouse_id} at {self.client.endpoint} cannot be named `{new.name}`: another"
                f" warehouse of project {new.project_id} has that name and is not listed, since {unlisted}."
                " Choose another name."
            ) from None


def explain_unlisted_holder(client: Client, taken: AlreadyExistsError) -> AlreadyExistsError:
    """Add to the error why lists do not show the warehouse that holds the name, and return the error."""
    unlisted = client.server().unlisted
    if unlisted and taken.kind in warehouses.NAME_TAKEN:
        taken.add(
            f"The warehouse of that name is not listed, since {unlisted}. Choose another name, or activate that"
            " warehouse and take it over with `adopt=True`."
        )
    elif unlisted:
        taken.add(f"The existing warehouse may not be listed, since {unlisted}.")
    return taken


def patiently(call: Callable[[], T], *, fresh_role: bool) -> T:
    """Retry a call that probes storage while a new role is not usable yet."""
    try:
        return retry_until(call, is_not_yet, seconds=settings.role_propagation(), every=1) if fresh_role else call()
    except RefusedError as refused:
        if _is_put_without_answer(refused):
            refused.add(
                "S3 did not respond. The server may be unable to assume `assume_role_arn`."
                " Check the role's trust policy, the external id and the address of the storage."
            )
        raise


def is_not_yet(error: BaseException) -> bool:
    """Return whether a refused call may succeed once a new role has propagated."""
    return isinstance(error, RefusedError) and (error.kind in NOT_YET or _is_put_without_answer(error))


def _is_put_without_answer(refused: RefusedError) -> bool:
    return (refused.status, refused.kind) == (400, "Unexpected") and PUT_WITHOUT_RESPONSE in str(refused)


@contextmanager
def awake(client: Client, warehouse_id: str | None) -> Generator[None]:
    """Activate an inactive warehouse while the block runs. Do nothing if the warehouse is missing or active."""
    warehouse = warehouses.get(client, warehouse_id) if warehouse_id else None
    asleep = warehouse is not None and warehouse["status"] != "active"
    if not warehouse_id or not asleep:
        yield
        return
    warehouses.activate(client, warehouse_id)
    try:
        yield
    finally:
        warehouses.deactivate(client, warehouse_id)
