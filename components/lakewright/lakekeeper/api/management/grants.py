"""Who holds what on an object, read and changed: over OpenFGA's tuples where a server has them, else its Grants API.

Both may be there. The tuples then go first: they are the same, every version has them, and the Grants API is a preview.
"""

from collections.abc import Callable, Iterable
from typing import Any, cast

from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import (
    ForbiddenError,
    GrantsUnsupportedError,
    NoSuchPathError,
    NotFoundError,
    NotGrantableError,
    RefusedError,
)
from lakewright.lakekeeper.api.connection.paging import pages, parts
from lakewright.lakekeeper.api.connection.privileges import RELATIONS, GrantEntry, Object
from lakewright.lakekeeper.api.management import permissions, projects, roles, tags, warehouses

AT_ONCE = 100
"""So many entries a server takes in one call."""

TRIES = 5
"""So often a change is read and sent again because somebody else changed the same grants meanwhile."""

Plan = Callable[[frozenset[GrantEntry]], tuple[set[GrantEntry], set[GrantEntry]]]
"""From what is held now to what is to be written and what to be deleted."""


def held(client: Client, on: Object) -> frozenset[GrantEntry] | None:
    """All that is held on an object itself; None if the object is not there."""
    try:
        return permissions.held(client, on) if _has_tuples(client, on) else _listed(client, on)
    except NoSuchPathError as unknown:
        if not client.server().keeps_tuples:  # with them it has the path: something on the way to it does not
            unknown.add(_perhaps_none(client))
        raise
    except NotFoundError:
        return None
    except ForbiddenError:
        if not _is_gone(client, on):
            raise
        return None


def get_cached(client: Client, on: Object) -> frozenset[GrantEntry] | None:
    """As `held`, for a refresh: asked for once by all its readers."""
    return client.lists.get_cached((client, "grants", on), lambda: held(client, on))


def add(client: Client, on: Object, one: GrantEntry) -> None:
    """Give one privilege. Somebody who has it already keeps it."""
    try:
        _send(client, on, [one], [])
    except RefusedError as refused:
        if refused.kind != "TupleAlreadyExistsError":
            raise


def remove(client: Client, on: Object, one: GrantEntry) -> None:
    """Take one privilege away. One that is not held, or on an object that is gone, is a success."""
    try:
        _send(client, on, [], [one])
    except NotFoundError:
        pass
    except ForbiddenError:
        if not _is_gone(client, on):
            raise


def converge(client: Client, on: Object, plan: Plan) -> frozenset[GrantEntry] | None:
    """Change what is held as planned, in one transaction of the server where it fits in one.

    Returns what is held then; None if the object is not there.
    """
    for tries_left in reversed(range(TRIES)):
        there = held(client, on)
        if there is None:
            return None
        writes, deletes = plan(there)
        writes, deletes = writes - there, deletes & there
        try:
            _send(client, on, sorted(writes), sorted(deletes))
        except RefusedError as refused:
            if refused.kind not in permissions.CONFLICTS or not tries_left:
                raise
            continue
        return (there | writes) - deletes
    raise AssertionError("the last try returns or raises")


def _is_gone(client: Client, on: Object) -> bool:
    """Whether a refusal means that the object is not there: OpenFGA is asked first, and knows nothing of such."""
    try:
        match on.kind:
            case "server":
                return False
            case "project":
                return projects.name_of(client, on.project_id or "") is None
            case "tag":
                return not tags.is_there(client, on.project_id or "", on.object_id)
            case "role":
                return roles.get(client, on.project_id or "", on.object_id) is None
            case _:
                return warehouses.get(client, on.warehouse_id) is None
    except ForbiddenError:
        return False


def _has_tuples(client: Client, on: Object) -> bool:
    server = client.server()
    if not server.keeps_tuples and (on.kind == "role" or not server.has_grants_api):
        raise _keeps_none(client, on)
    return server.keeps_tuples


def _keeps_none(client: Client, on: Object) -> GrantsUnsupportedError:
    server = client.server()
    what = "grants on roles" if on.kind == "role" and server.has_grants_api else "grants"
    return GrantsUnsupportedError(
        f"{client.endpoint} keeps no {what}: it runs Lakekeeper {server.version_text} with authorizer"
        f" `{server.authz_backend}`, which has no place for them, so everybody who gets in may do whatever that"
        " authorizer lets them. Remove the declaration, or run the server with OpenFGA."
    )


def _perhaps_none(client: Client) -> str:
    """Why a server new enough for the Grants API may not know its path: an authorizer need not have a place for it."""
    server = client.server()
    return (
        f"Either something on the way to {client.endpoint} answered, or the authorizer `{server.authz_backend}` of its"
        f" Lakekeeper {server.version_text} has no place for grants: then remove the declaration, or run the server"
        " with OpenFGA."
    )


def _send(client: Client, on: Object, writes: Iterable[GrantEntry], deletes: Iterable[GrantEntry]) -> None:
    tuples = _has_tuples(client, on)
    if tuples:
        _check_words(client, on, writes)
    entries = [*((True, one) for one in writes), *((False, one) for one in deletes)]
    for batch in parts(entries, AT_ONCE):
        written = [one for write, one in batch if write]
        deleted = [one for write, one in batch if not write]
        if tuples:
            permissions.write(client, on, written, deleted)
        else:
            _apply(client, on, written, deleted)


def _check_words(client: Client, on: Object, writes: Iterable[GrantEntry]) -> None:
    """A word that OpenFGA does not know would be answered as a body of the wrong shape."""
    known = client.server().relations(on.kind)
    for one in writes:
        if one.privilege not in known:
            newer = " in this version" if one.privilege in RELATIONS[on.kind] else ""
            raise NotGrantableError(
                f"`{one.privilege}` cannot be granted on a {on.kind} at {client.endpoint}{newer}; expected one of"
                f" {', '.join(known) or 'none'}"
            )


# The Grants API.


def path(on: Object) -> str:
    """Where the grants on an object are."""
    root = "/management/v1"
    match on.kind:
        case "server" | "project" | "role":
            return f"{root}/{on.kind}/grants"
        case "tag":
            return f"{root}/tag-definition/{on.object_id}/grants"
        case "warehouse":
            return f"{root}/warehouse/{on.warehouse_id}/grants"
        case _:
            return f"{root}/warehouse/{on.warehouse_id}/{on.kind}/{on.object_id}/grants"


def _listed(client: Client, on: Object) -> frozenset[GrantEntry]:
    return frozenset(
        GrantEntry(one["privilege"], *next(iter(one["principal"].items())))
        for page in pages(client, path(on), project=on.project_id)
        for one in cast(list[dict[str, Any]], page["grants"])
    )


def _apply(client: Client, on: Object, writes: Iterable[GrantEntry], deletes: Iterable[GrantEntry]) -> None:
    body = {"writes": [_entry(one) for one in writes], "deletes": [_entry(one) for one in deletes]}
    try:
        client.call("POST", path(on), project=on.project_id, body=body)
    except NoSuchPathError as unknown:
        unknown.add(_perhaps_none(client))
        raise
    except RefusedError as refused:
        match refused.kind:
            case "InvalidGrantPrivilege":
                raise NotGrantableError(f"{refused}. Expected one of {', '.join(_words(client, on))}") from None
            case "GrantUserNotFound":
                raise NotGrantableError(f"{refused}. Declare a `User`, and let the grant depend on it") from None
            case _:
                raise


def _words(client: Client, on: Object) -> list[str]:
    answer = client.json("GET", f"{path(on)}/grantable-privileges", project=on.project_id)
    return [str(one["privilege"]["name"]) for one in answer["privileges"]]


def _entry(one: GrantEntry) -> dict[str, Any]:
    return {"privilege": one.privilege, "principal": {one.kind: one.principal}}
