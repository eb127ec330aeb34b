"""Errors of the providers, in addition to the errors of calls to a server. `lakewright.errors` draws the tree."""

import sys
import traceback

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.terminal.escaping import escape_text


class HoldsTablesError(LakekeeperError):
    """A deletion or replacement would delete tables, and `deletion` does not allow it."""


class StillHeldError(LakekeeperError):
    """An object to delete contains objects outside the stack, and `deletion` does not allow deleting them."""


class CannotCountError(LakekeeperError):
    """Tables or objects cannot be counted."""


class BucketTagsDeniedError(CannotCountError):
    """The tags of a bucket may not be read, so its owner is not known."""


class NotOwnedError(LakekeeperError):
    """An object that this stack may not adopt has the natural key."""


class MovedServerError(LakekeeperError):
    """The endpoint is another server than the server in the state."""


class DeletedOutsideStackError(LakekeeperError):
    """The object no longer exists."""


class ReplacementRefusedError(LakekeeperError):
    """A replacement is impossible. It was refused before any change."""


class TargetMissingError(LakekeeperError):
    """The object to grant on does not exist."""


class MissingPrincipalError(LakekeeperError):
    """The AWS identity of the server does not exist."""


class InactiveWarehouseError(LakekeeperError):
    """The object cannot be seen, because its warehouse is inactive."""

    def __init__(self, message: str, warehouse_id: str) -> None:
        """Create the error."""
        super().__init__(message)
        self.warehouse_id = warehouse_id


class EvolutionRefusedError(LakekeeperError):
    """A table would lose data or become unreadable. No part of the change was applied."""


class BucketRefusedError(LakekeeperError):
    """S3, KMS or the provider refused to change a bucket or key of the stack."""


class KeyInUseError(LakekeeperError):
    """Objects are encrypted with a key that the spec no longer names."""


class RoleTooOpenError(LakekeeperError):
    """The role of a tenant's bucket works without its external ID, or outside the warehouse's prefix."""


class RemovalRefusedError(LakekeeperError):
    """Removing a warehouse or storage from the spec would lose data or stop half-way."""


class ArchiveRefusedError(LakekeeperError):
    """A warehouse cannot be archived, reactivated or purged as its archive's rules require."""


def show_sentences_only() -> None:
    """Print later errors of a provider's process as name and message, unless tracebacks are enabled."""
    if not settings.tracebacks():
        sys.tracebacklimit = 0
        traceback.format_exc = format_last_error  # the SDK's provider reports a failed call with it
        show_names_only()


def format_last_error(*_: object, **__: object) -> str:
    """Return the current error as Python prints it, without its causes. Plain `pulumi` prints it as it is."""
    error = sys.exc_info()[1]
    return escape_text("".join(traceback.format_exception(error, chain=False))) if error is not None else ""


def show_names_only() -> None:
    """Print later errors without their module names.

    Only for provider processes. Python omits the module name only for built-in errors.
    """
    pending: list[type[BaseException]] = [LakekeeperError, UnresolvedCredentialError]
    while pending:
        kind = pending.pop()
        kind.__module__ = "builtins"
        pending += kind.__subclasses__()
