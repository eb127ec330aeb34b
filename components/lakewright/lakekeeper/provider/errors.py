"""Errors of the provider itself, beside those of calls to a server (`api.connection.errors`).

LakekeeperError (`api.connection.errors`)
+-- HoldsTablesError          deleting or replacing would delete tables
+-- StillHeldError            destroying would stop half-way, because of an object that is not the stack's
+-- CannotCountError          tables or objects cannot be counted, so nothing is deleted
+-- NotOwnedError             the object exists, and this stack neither made it nor may adopt it
+-- MovedServerError          the endpoint is not the server that has the stack's objects
+-- DeletedOutsideStackError  the object to change does not exist any more
+-- ReplacementRefusedError   a replacement that cannot work
+-- TargetMissingError        the object to grant on does not exist
+-- InactiveWarehouseError    the object cannot be seen while its warehouse is inactive
+-- EvolutionRefusedError     a change of a table that would lose data, or make it unreadable
+-- BucketRefusedError        S3, KMS or the provider refuses to change a bucket or key of the stack
+-- KeyInUseError             a bucket's key would leave while objects are encrypted with it
+-- RemovalRefusedError       a warehouse or storage would leave the spec, and its data with it
"""

import sys
import traceback

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.errors import LakekeeperError


class HoldsTablesError(LakekeeperError):
    """Deleting or replacing would take tables along, and `deletion` does not allow it."""


class StillHeldError(LakekeeperError):
    """Something that is not the stack's is in what would be destroyed, and `deletion` does not allow to remove it."""


class CannotCountError(LakekeeperError):
    """Tables or objects cannot be counted."""


class NotOwnedError(LakekeeperError):
    """An object that this stack may not adopt has the natural key."""


class MovedServerError(LakekeeperError):
    """The endpoint is another server than the one in the state."""


class DeletedOutsideStackError(LakekeeperError):
    """The object does not exist any more."""


class ReplacementRefusedError(LakekeeperError):
    """A replacement that cannot work, refused before anything is touched."""


class TargetMissingError(LakekeeperError):
    """What is to be granted on is not there."""


class InactiveWarehouseError(LakekeeperError):
    """An inactive warehouse hides what is in it."""

    def __init__(self, message: str, warehouse_id: str) -> None:
        """Create the error."""
        super().__init__(message)
        self.warehouse_id = warehouse_id


class EvolutionRefusedError(LakekeeperError):
    """A table would lose data, or could not be read any more; nothing of the change was made."""


class BucketRefusedError(LakekeeperError):
    """A bucket or key of the stack cannot be changed, because S3, KMS or the provider refuses it."""


class KeyInUseError(LakekeeperError):
    """Objects are encrypted with a key that the spec does not name any more."""


class RemovalRefusedError(LakekeeperError):
    """A warehouse or storage would leave the spec in a way that loses data, or would stop half-way."""


def show_sentences_only() -> None:
    """From here on, an error of a provider's process is a name and a sentence, unless tracebacks are asked for."""
    if not settings.tracebacks():
        sys.tracebacklimit = 0
        traceback.format_exc = format_last_error  # the SDK's provider answers a failed call with it
        show_names_only()


def format_last_error(*_: object, **__: object) -> str:
    """Return the error that is being handled as Python prints it, without the errors that it came from."""
    error = sys.exc_info()[1]
    return "".join(traceback.format_exception(error, chain=False)) if error is not None else ""


def show_names_only() -> None:
    """From here on, a traceback's last line starts with an error's bare name, as people read it.

    For provider processes alone: Python leaves a module's name out only for built-in ones.
    """
    pending: list[type[BaseException]] = [LakekeeperError, UnresolvedCredentialError]
    while pending:
        kind = pending.pop()
        kind.__module__ = "builtins"
        pending += kind.__subclasses__()
