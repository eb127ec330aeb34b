"""Errors of calls to a Lakekeeper server. `lakewright.errors` draws the tree."""

from dataclasses import dataclass

from lakewright.errors import LakewrightError

ALREADY_EXISTS = frozenset(
    {
        "WarehouseAlreadyExists",
        "WarehouseNameAlreadyExists",
        "CreateWarehouseStorageProfileOverlap",  # the server checks the location before the name
        "ProjectIdAlreadyExists",
        "AlreadyExistsException",
        "EntityAlreadyExists",
        "UserAlreadyExists",
        "RoleNameAlreadyExists",
        "RoleSourceIdConflict",
    }
)
NOT_EMPTY = frozenset({"WarehouseNotEmpty", "ProjectNotEmpty", "NamespaceNotEmptyException", "NamespaceNotEmpty"})
PROTECTED = frozenset(
    {
        "WarehouseProtected",
        "NamespaceProtected",
        "ChildNamespaceProtected",
        "ChildTabularProtected",
        "ProtectedTabularDeletionWithoutForce",
    }
)
UNFINISHED_TASKS = frozenset({"WarehouseHasUnfinishedTasks", "NamespaceHasRunningTabularExpirations"})
CONFLICTS = frozenset({"CommitFailedException", "CatalogCommitConflicts"})
CONCURRENT = frozenset(
    {
        "CatalogBackendError",
        "ConcurrentUpdateError",
        "RequestInProgress",
        "GrantLockTimeout",
        "RoleMembershipLockTimeout",
        "TransactionFailed",
    }
)
"""409 types of a concurrent change by another process: nothing was applied, and the call may be repeated."""

GRANT_REFUSED_TYPE = "Unauthorized"
"""401 type of a known user who may not grant or revoke this privilege. Other 401s have other types."""


OPENFGA_LEFTOVERS_HINT = (
    "OpenFGA still holds relations of an object with that id: it was deleted without them, or they were added before it"
    " was created. Choose another id, or delete those tuples in OpenFGA."
)
NO_PROJECT = (
    "The request names no project, and the server has no default one: set `project_id` of the server's settings."
)
ADVICE = {
    "ObjectHasRelations": OPENFGA_LEFTOVERS_HINT,
    "ObjectUsedInRelation": OPENFGA_LEFTOVERS_HINT,
    "MissingProjectId": NO_PROJECT,
    "ProjectIdMissing": NO_PROJECT,
}
"""Advice by the type of a refusal, where the server's message has none."""


@dataclass(frozen=True)
class Call:
    """The call that an error is about."""

    method: str
    path: str
    endpoint: str

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{self.method} {self.path} at {self.endpoint}"


class LakekeeperError(LakewrightError):
    """Base of all errors of calls to a Lakekeeper server."""

    def add(self, sentence: str) -> None:
        """Append a sentence to the message."""
        self.args = (f"{str(self).rstrip('.')}. {sentence}",)


class UnreachableError(LakekeeperError):
    """No connection could be established; nothing was sent."""


class ResponseTimeoutError(LakekeeperError):
    """No response in time; the call may have been applied."""


class UnconfirmedError(LakekeeperError):
    """No response from the server itself; the call may have been applied."""


class UnsupportedServerError(LakekeeperError):
    """The server's version does not support the requested feature."""


class GrantsUnsupportedError(UnsupportedServerError):
    """The server's authorizer does not store grants."""


class NotGrantableError(LakekeeperError):
    """The server does not know the privilege, or the user or role to grant it to."""


class NotAuthenticatedError(LakekeeperError):
    """The server does not accept the token, or there is no token."""


class InsecureEndpointError(LakekeeperError):
    """A token or secret would be sent without TLS; nothing was sent."""


class BadResponseError(LakekeeperError):
    """The response is not one of Lakekeeper; the call may have been applied."""


class NothingFoundError(LakekeeperError):
    """The object of a lookup does not exist, or is hidden from this identity."""


class InvalidLookupError(LakekeeperError):
    """The arguments of a lookup are wrong."""


class RefusedError(LakekeeperError):
    """The server refused the call."""

    def __init__(self, message: str, *, status: int = 0, kind: str = "") -> None:
        """Create the error."""
        super().__init__(message)
        self.status = status
        self.kind = kind
        """`error.type` of the response; empty if the response has not Lakekeeper's error shape."""


class ForbiddenError(RefusedError):
    """The identity is known but lacks the right."""


class NotFoundError(RefusedError):
    """404: the object does not exist, or is hidden from this identity."""


class NoSuchPathError(RefusedError):
    """404 that does not prove the object missing: from a gateway, or for a path that the version does not have."""


class AlreadyExistsError(RefusedError):
    """The name, id or storage location is taken."""

    after_retry = False
    """Whether an earlier try of this call may have created the object: a gateway may have sent its error response."""


class NotEmptyError(RefusedError):
    """The object to delete is not empty."""


class ProtectedError(RefusedError):
    """The object to delete is protected."""


class BusyError(RefusedError):
    """Tasks are unfinished, or another process is changing the same object."""


class ConflictError(RefusedError):
    """A requirement of a commit no longer holds. Read the table again before the next try."""


def refusal(call: Call, status: int, kind: str, message: str) -> LakekeeperError:
    """Return the error for an error response.

    Args:
        call: The call, which the message names.
        status: HTTP status code.
        kind: The server's `error.type`; empty if there is none.
        message: The server's message.
    """
    reason = " ".join(message.split())[:600] or "no reason given"
    label = " ".join(f"{status} {kind}".split())
    text = f"{call} responded with {label}: {reason}"
    if kind in ADVICE:
        text = f"{text.rstrip('.')}. {ADVICE[kind]}"
    if status == 401 and kind == GRANT_REFUSED_TYPE:
        return ForbiddenError(
            f"{text}. The caller needs `ownership`, `manage_grants`, or `pass_grants` and the privilege itself"
            " on that object, or `operator` on the server.",
            status=status,
            kind=kind,
        )
    if status == 401:
        return NotAuthenticatedError(f"{text}. Check `auth` of the server's settings.")
    if status in {502, 504}:
        return UnconfirmedError(text)
    if status == 408:
        return ResponseTimeoutError(text)
    return _choose_error(status, kind)(text, status=status, kind=kind)


def _choose_error(status: int, kind: str) -> type[RefusedError]:
    if status == 403:
        return ForbiddenError
    if status == 404:
        return NotFoundError if kind else NoSuchPathError
    error_kinds = [
        (ALREADY_EXISTS, AlreadyExistsError),
        (NOT_EMPTY, NotEmptyError),
        (PROTECTED, ProtectedError),
        (UNFINISHED_TASKS, BusyError),
    ]
    if status == 409:
        error_kinds += [(CONCURRENT, BusyError), (CONFLICTS, ConflictError)]
    return next((error for kinds, error in error_kinds if kind in kinds), RefusedError)
