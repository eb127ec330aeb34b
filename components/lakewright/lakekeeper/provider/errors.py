"""What the provider refuses by itself, beside what the server or the way to it refuses (`api.errors`).

LakekeeperError (api.errors)
+-- HoldsTables          deleting or replacing would take tables along
+-- StillHeld            destroying would come to a halt half-way, because of something that is not the stack's
+-- CannotCount          what cannot be counted is not deleted
+-- NotOurs              the object exists, this stack did not make it, and nothing says that it may take it over
+-- MovedServer          the endpoint is another server than the one that has the stack's objects
+-- DeletedBehindBack    what was to be changed is not there any more
+-- ReplacementRefused   a replacement that cannot work
+-- TargetMissing        what is to be granted on is not there
+-- Hidden               whether something is there cannot be told while its warehouse is inactive
+-- EvolutionRefused     a change of a table that would lose data, or make it unreadable
+-- BucketRefused        a bucket or key of the stack cannot be changed, because S3, KMS or the provider refuses it
+-- KeyInUse             a bucket's key would leave while objects are encrypted with it
+-- RemovalRefused       a warehouse or storage would leave the spec, and its data with it
"""

# ruff: noqa: N818 - error names are read by people, at the start of a message

import sys
import traceback

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.lakekeeper.api.connection import settings
from lakewright.lakekeeper.api.connection.errors import LakekeeperError


class HoldsTables(LakekeeperError):
    """Deleting or replacing would take tables along, and `deletion` does not allow it."""


class StillHeld(LakekeeperError):
    """Something that is not the stack's is in what would be destroyed, and `deletion` does not allow to remove it."""


class CannotCount(LakekeeperError):
    """Whether there are tables, or objects, cannot be told."""


class NotOurs(LakekeeperError):
    """The natural key is taken by an object that this stack may not take over."""


class MovedServer(LakekeeperError):
    """The endpoint is another server than the one in the state."""


class DeletedBehindBack(LakekeeperError):
    """The object is not there any more."""


class ReplacementRefused(LakekeeperError):
    """A replacement that cannot work, refused before anything is touched."""


class TargetMissing(LakekeeperError):
    """What is to be granted on is not there."""


class Hidden(LakekeeperError):
    """An inactive warehouse hides what is in it."""

    def __init__(self, message: str, warehouse_id: str) -> None:
        super().__init__(message)
        self.warehouse_id = warehouse_id


class EvolutionRefused(LakekeeperError):
    """A table would lose data, or could not be read any more; nothing of the change was made."""


class BucketRefused(LakekeeperError):
    """A bucket or key of the stack cannot be changed, because S3, KMS or the provider refuses it."""


class KeyInUse(LakekeeperError):
    """Objects are encrypted with a key that the spec does not name any more."""


class RemovalRefused(LakekeeperError):
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
