"""Changing a warehouse in place: the calls that bring what is there to what is declared, and their order."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import AlreadyExistsError, RefusedError
from lakewright.lakekeeper.api.connection.retry import until
from lakewright.lakekeeper.api.management import managed_access, warehouses
from lakewright.lakekeeper.provider import diff as difference
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.storage.credentials import credential_request
from lakewright.lakekeeper.warehouse.model import NEEDS_ACTIVE, WarehouseArgs, plain_changes, storage_request

T = TypeVar("T")

NOT_YET = frozenset({"ShortTermCredentialError", "PermissionDenied"})
"""How a server says that a role cannot be assumed, or not be used, which is passing while the role is new."""

PUT_WITHOUT_ANSWER = "Unknown S3 error during write"
"""What the 400 `Unexpected` of the server's first put says when S3 gave no answer: with `assume_role_arn`, STS is asked
within that put, and its denial is not in the message. A put that S3 refuses says `S3 write failed`."""

NAME_CONSTRAINT = "unique_warehouse_name_in_project"
"""What the 503 of a rename onto a taken name says."""


def needed(there: WarehouseArgs, new: WarehouseArgs, *, resend: bool) -> set[str]:
    """The calls that lead from one to the other. `resend` asks for the credential whatever is known of it."""
    changes = difference.between(there, new)
    calls = difference.via(changes)
    # A region that moves in place counts as a replacement elsewhere.
    if any(change.path.startswith("storage.") for change in changes):
        calls |= {"storage"}
    return calls | ({"storage-credential"} if resend else set[str]())


@dataclass(frozen=True)
class Changes:
    """Calls to one warehouse. `fresh_role` is patient with roles that may have been made a moment ago."""

    client: Client
    warehouse_id: str
    new: WarehouseArgs
    secret: Callable[[str], str]
    fresh_role: bool

    def make(self, calls: set[str], *, active: bool) -> None:
        """Make them, waking the warehouse for those that need it."""
        waking = bool(calls & NEEDS_ACTIVE)
        if waking and not active:
            warehouses.activate(self.client, self.warehouse_id)
        if "rename" in calls:
            self._rename()
        if "storage" in calls:  # takes the credential along
            self._storage("storage", storage_request(self.new, self.secret))
        elif "storage-credential" in calls:
            credential = credential_request(self.new.credential, self.secret) if self.new.credential else None
            self._storage("storage-credential", {"new-storage-credential": credential})
        for call, body in plain_changes(self.new).items():
            if call in calls:
                self._change(call, body)
        if "managed-access" in calls:
            managed_access.set_of_warehouse(self.client, self.warehouse_id, managed=bool(self.new.managed_access))
        if not self.new.active and (active or waking):
            warehouses.deactivate(self.client, self.warehouse_id)
        if self.new.active and not active and not waking:
            warehouses.activate(self.client, self.warehouse_id)

    def _change(self, what: str, body: dict[str, Any]) -> None:
        warehouses.change(self.client, self.warehouse_id, what, body)

    def _storage(self, what: str, body: dict[str, Any]) -> None:
        patiently(
            lambda: warehouses.change_storage(self.client, self.warehouse_id, what, body), fresh_role=self.fresh_role
        )

    def _rename(self) -> None:
        new = self.new
        taken = warehouses.find_by_name(self.client, new.project_id, new.name)
        if taken and warehouses.id_of(taken) != self.warehouse_id:
            raise NotOwnedError(
                f"warehouse {self.warehouse_id} at {self.client.endpoint} cannot be named `{new.name}`: warehouse"
                f" {warehouses.id_of(taken)} of project {new.project_id} has that name. Choose another."
            )
        try:
            self._change("rename", {"new-name": new.name})
        except RefusedError as refused:
            if NAME_CONSTRAINT not in str(refused):
                raise
            unlisted = self.client.server().unlisted or "it was made a moment ago"
            raise NotOwnedError(
                f"warehouse {self.warehouse_id} at {self.client.endpoint} cannot be named `{new.name}`: another"
                f" warehouse of project {new.project_id} has that name and is not listed, since {unlisted}."
                " Choose another name."
            ) from None


def unlisted_holder(client: Client, taken: AlreadyExistsError) -> AlreadyExistsError:
    """Say why a name is taken by a warehouse that no list shows."""
    unlisted = client.server().unlisted
    if unlisted and taken.kind in warehouses.NAME_TAKEN:
        taken.add(
            f"The warehouse of that name is not listed, since {unlisted}. Choose another name, or activate that"
            " warehouse and take it over with `adopt=True`."
        )
    elif unlisted:
        taken.add(f"The warehouse that is there may not be listed, since {unlisted}.")
    return taken


def patiently(call: Callable[[], T], *, fresh_role: bool) -> T:
    """Repeat a call that probes a storage while a role that may be new is not let in yet."""
    try:
        return until(call, is_not_yet, seconds=settings.role_propagation(), every=1) if fresh_role else call()
    except RefusedError as refused:
        if _is_put_without_answer(refused):
            refused.add(
                "S3 gave no answer, as when the server cannot assume `assume_role_arn`. Check the role's trust policy,"
                " the external id and the storage's address."
            )
        raise


def is_not_yet(error: BaseException) -> bool:
    """Whether a refusal may pass once a new role is known everywhere."""
    return isinstance(error, RefusedError) and (error.kind in NOT_YET or _is_put_without_answer(error))


def _is_put_without_answer(refused: RefusedError) -> bool:
    return (refused.status, refused.kind) == (400, "Unexpected") and PUT_WITHOUT_ANSWER in str(refused)


@contextmanager
def awake(client: Client, warehouse_id: str | None) -> Generator[None]:
    """Activate a warehouse for as long as the block runs, if it is inactive; without a warehouse nothing is done."""
    found = warehouses.get(client, warehouse_id) if warehouse_id else None
    asleep = found is not None and found["status"] != "active"
    if not warehouse_id or not asleep:
        yield
        return
    warehouses.activate(client, warehouse_id)
    try:
        yield
    finally:
        warehouses.deactivate(client, warehouse_id)
