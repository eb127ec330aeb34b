"""What can go wrong between here and a Lakekeeper server.

LakekeeperError
+-- Unreachable            no connection, refused, name unknown, TLS
+-- TooSlow                connected, but no answer in time (the call may have been applied)
+-- Unconfirmed            the connection broke or a gateway gave up: the call may have been applied
+-- UnsupportedServer      the server is too old for this client, or for what is declared
|   +-- KeepsNoGrants      its authorizer has no place for grants
+-- NotGrantable           a privilege, or somebody to have it, that the server does not know
+-- NotAuthenticated       401, or no token to be had
+-- InsecureEndpoint       a secret would be sent without TLS
+-- BadAnswer              an answer that no Lakekeeper gives: too large, endless, without a key
+-- NothingFound           a look-up of something that is not there
+-- InvalidLookUp          a look-up whose arguments are wrong
+-- Refused                any other answer that says no; `type` is the server's own word for it
    +-- Forbidden          403, and the 401 of somebody who is known but may not grant
    +-- NotFound           404, in the server's words
    +-- NoSuchPath         404 without them: a gateway's, or for a path that this server does not have
    +-- AlreadyExists      a create whose name, id or place is taken
    +-- NotEmpty           409: a project, warehouse or namespace still holds something
    +-- Protected          409: protection is on
    +-- Busy               409: unfinished tasks, or somebody else is changing the same thing
    +-- Conflict           409: a commit assumed what is not so any more; nothing was applied

UnusableAnswerError (api.answers)  an answer that is not read to its end; raised as one of the above where it is caught
"""

# ruff: noqa: N818 - error names are read by people, at the start of a message

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
        return f"{self.method} {self.path} at {self.endpoint}"


class LakekeeperError(Exception):
    """Anything that went wrong with a Lakekeeper server."""

    def add(self, sentence: str) -> None:
        """Say one thing more."""
        self.args = (f"{str(self).rstrip('.')}. {sentence}",)


class Unreachable(LakekeeperError):
    """There was no connection; nothing was sent."""


class TooSlow(LakekeeperError):
    """There was no answer in time; the call may have been applied."""


class Unconfirmed(LakekeeperError):
    """There was no answer from the server itself; the call may have been applied."""


class UnsupportedServer(LakekeeperError):
    """The server's version cannot do what is asked."""


class KeepsNoGrants(UnsupportedServer):
    """The server has no place for grants."""


class NotGrantable(LakekeeperError):
    """The server does not know the privilege, or does not know who is to have it."""


class NotAuthenticated(LakekeeperError):
    """The server does not accept who we say we are, or there is no token to say it with."""


class InsecureEndpoint(LakekeeperError):
    """A token or secret would be sent without TLS; nothing was sent."""


class BadAnswer(LakekeeperError):
    """The server answered what no Lakekeeper answers; the call may have been applied."""


class NothingFound(LakekeeperError):
    """What was looked up is not there, or hidden from this identity."""


class InvalidLookUp(LakekeeperError):
    """The arguments of a look-up are wrong."""


class Refused(LakekeeperError):
    """The server answered and said no."""

    def __init__(self, message: str, *, status: int = 0, kind: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        """`error.type` of the answer; empty when the answer was not in Lakekeeper's error shape."""


class Forbidden(Refused):
    """We are known, and may not."""


class NotFound(Refused):
    """404: missing, or hidden from this identity."""


class NoSuchPath(Refused):
    """404 that says nothing of what is there: a gateway answered, or the server's version lacks the path."""


class AlreadyExists(Refused):
    """The name, id or place is taken."""

    after_retry = False
    """Whether this very call sent the create before and got an answer that a gateway may have given after it."""


class NotEmpty(Refused):
    """What was to be deleted still holds something."""


class Protected(Refused):
    """What was to be deleted is protected."""


class Busy(Refused):
    """Tasks have not ended, or somebody else is changing the same thing."""


class Conflict(Refused):
    """A commit assumed what is not so any more; after a look it may be sent anew."""


def refusal(call: Call, status: int, kind: str, message: str) -> LakekeeperError:
    """The error for an answer of the server. `message` is the server's; its status, type and the call are added."""
    said = " ".join(message.split())[:600] or "no reason given"
    label = f"{status} {kind}".strip()
    text = f"{call} answered {label}: {said}"
    if kind in ADVICE:
        text = f"{text.rstrip('.')}. {ADVICE[kind]}"
    if status == 401 and kind == MAY_NOT_GRANT:
        return Forbidden(
            f"{text}. Whoever runs this needs `ownership`, `manage_grants`, or `pass_grants` and the privilege itself"
            " there; or the server's `operator`.",
            status=status,
            kind=kind,
        )
    if status == 401:
        return NotAuthenticated(f"{text}. Check `auth` of the server's settings.")
    if status in {502, 504}:
        return Unconfirmed(text)
    if status == 408:
        return TooSlow(text)
    return _refused_as(status, kind)(text, status=status, kind=kind)


def _refused_as(status: int, kind: str) -> type[Refused]:
    if status == 403:
        return Forbidden
    if status == 404:
        return NotFound if kind else NoSuchPath
    known = [(ALREADY_EXISTS, AlreadyExists), (NOT_EMPTY, NotEmpty), (PROTECTED, Protected), (UNFINISHED_TASKS, Busy)]
    if status == 409:
        known += [(CONCURRENT, Busy), (CONFLICTS, Conflict)]
    return next((error for kinds, error in known if kind in kinds), Refused)
