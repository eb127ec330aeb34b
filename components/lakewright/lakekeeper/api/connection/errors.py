"""Errors of calls to a Lakekeeper server.

LakekeeperError
+-- UnreachableError            no connection: refused, unknown name, TLS
+-- ResponseTimeoutError        connected, but no response in time; the call may have been applied
+-- UnconfirmedError            the connection broke, or a gateway timed out; the call may have been applied
+-- UnsupportedServerError      the server is too old for this client, or for a declared property
|   +-- GrantsUnsupportedError  its authorizer stores no grants
+-- NotGrantableError           the server does not know the privilege or the principal
+-- NotAuthenticatedError       401, or no token
+-- InsecureEndpointError       a secret would be sent without TLS
+-- BadResponseError            no Lakekeeper responds so: too large, endless, or without a required key
+-- NothingFoundError           a look-up found nothing
+-- InvalidLookupError          the arguments of a look-up are wrong
+-- RefusedError                any other error response; `kind` is the server's name for it
    +-- ForbiddenError          403, and the 401 of a known user who may not grant
    +-- NotFoundError           404 from the server
    +-- NoSuchPathError         404 from a gateway, or for a path that this server does not have
    +-- AlreadyExistsError      the name, id or place of a create is taken
    +-- NotEmptyError           409: a project, warehouse or namespace is not empty
    +-- ProtectedError          409: the object is protected
    +-- BusyError               409: unfinished tasks, or a concurrent change
    +-- ConflictError           409: a requirement of a commit does not hold; nothing was applied

UnusableResponseError (`responses`)  the body is not read to its end; raised as one of the above where it is caught
"""

from dataclasses import dataclass

ALREADY_EXISTS = frozenset(
    {
        "WarehouseAlreadyExists",
        "WarehouseNameAlreadyExists",
        "CreateWarehouseStorageProfileOverlap",  # of a warehouse made twice, the place is looked at before the name
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
"""Types of a 409 that say: somebody else was at it, nothing was applied, try again."""

MAY_NOT_GRANT = "Unauthorized"
"""Type of a 401 that says: we are known, but may not give or take this privilege. Other 401s have other types."""


LEFT_IN_OPENFGA = (
    "OpenFGA still holds relations of an object with that id, which was deleted without them or granted on before it"
    " was made. Choose another id, or delete those tuples in OpenFGA."
)
NO_PROJECT = (
    "The request names no project, and the server has no default one: set `project_id` of the server's settings."
)
ADVICE = {
    "ObjectHasRelations": LEFT_IN_OPENFGA,
    "ObjectUsedInRelation": LEFT_IN_OPENFGA,
    "MissingProjectId": NO_PROJECT,
    "ProjectIdMissing": NO_PROJECT,
}
"""What to do about refusals whose own words do not say it, by type."""


@dataclass(frozen=True)
class Call:
    """The call that an error is about."""

    method: str
    path: str
    endpoint: str

    def __str__(self) -> str:
        """Return the text for messages."""
        return f"{self.method} {self.path} at {self.endpoint}"


class LakekeeperError(Exception):
    """Anything that went wrong with a Lakekeeper server."""

    def add(self, sentence: str) -> None:
        """Say one thing more."""
        self.args = (f"{str(self).rstrip('.')}. {sentence}",)


class UnreachableError(LakekeeperError):
    """There was no connection; nothing was sent."""


class ResponseTimeoutError(LakekeeperError):
    """There was no answer in time; the call may have been applied."""


class UnconfirmedError(LakekeeperError):
    """There was no answer from the server itself; the call may have been applied."""


class UnsupportedServerError(LakekeeperError):
    """The server's version cannot do what is asked."""


class GrantsUnsupportedError(UnsupportedServerError):
    """The server has no place for grants."""


class NotGrantableError(LakekeeperError):
    """The server does not know the privilege, or does not know who is to have it."""


class NotAuthenticatedError(LakekeeperError):
    """The server does not accept who we say we are, or there is no token to say it with."""


class InsecureEndpointError(LakekeeperError):
    """A token or secret would be sent without TLS; nothing was sent."""


class BadResponseError(LakekeeperError):
    """The server answered what no Lakekeeper answers; the call may have been applied."""


class NothingFoundError(LakekeeperError):
    """What was looked up is not there, or hidden from this identity."""


class InvalidLookupError(LakekeeperError):
    """The arguments of a look-up are wrong."""


class RefusedError(LakekeeperError):
    """The server answered and said no."""

    def __init__(self, message: str, *, status: int = 0, kind: str = "") -> None:
        """Create the error."""
        super().__init__(message)
        self.status = status
        self.kind = kind
        """`error.type` of the answer; empty when the answer was not in Lakekeeper's error shape."""


class ForbiddenError(RefusedError):
    """We are known, and may not."""


class NotFoundError(RefusedError):
    """404: missing, or hidden from this identity."""


class NoSuchPathError(RefusedError):
    """404 that says nothing of what is there: a gateway answered, or the server's version lacks the path."""


class AlreadyExistsError(RefusedError):
    """The name, id or place is taken."""

    after_retry = False
    """Whether this very call sent the create before and got an answer that a gateway may have given after it."""


class NotEmptyError(RefusedError):
    """What was to be deleted still holds something."""


class ProtectedError(RefusedError):
    """What was to be deleted is protected."""


class BusyError(RefusedError):
    """Tasks have not ended, or somebody else is changing the same thing."""


class ConflictError(RefusedError):
    """A commit assumed what is not so any more; after a look it may be sent anew."""


def refusal(call: Call, status: int, kind: str, message: str) -> LakekeeperError:
    """The error for an answer of the server. `message` is the server's; its status, type and the call are added."""
    said = " ".join(message.split())[:600] or "no reason given"
    label = f"{status} {kind}".strip()
    text = f"{call} answered {label}: {said}"
    if kind in ADVICE:
        text = f"{text.rstrip('.')}. {ADVICE[kind]}"
    if status == 401 and kind == MAY_NOT_GRANT:
        return ForbiddenError(
            f"{text}. Whoever runs this needs `ownership`, `manage_grants`, or `pass_grants` and the privilege itself"
            " there; or the server's `operator`.",
            status=status,
            kind=kind,
        )
    if status == 401:
        return NotAuthenticatedError(f"{text}. Check `auth` of the server's settings.")
    if status in {502, 504}:
        return UnconfirmedError(text)
    if status == 408:
        return ResponseTimeoutError(text)
    return _refused_as(status, kind)(text, status=status, kind=kind)


def _refused_as(status: int, kind: str) -> type[RefusedError]:
    if status == 403:
        return ForbiddenError
    if status == 404:
        return NotFoundError if kind else NoSuchPathError
    known = [
        (ALREADY_EXISTS, AlreadyExistsError),
        (NOT_EMPTY, NotEmptyError),
        (PROTECTED, ProtectedError),
        (UNFINISHED_TASKS, BusyError),
    ]
    if status == 409:
        known += [(CONCURRENT, BusyError), (CONFLICTS, ConflictError)]
    return next((error for kinds, error in known if kind in kinds), RefusedError)
