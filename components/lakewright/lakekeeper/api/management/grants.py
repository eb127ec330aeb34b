"""Read and change the grants on an object: as OpenFGA tuples where the server has them, else by the Grants API.

A server may have both. Tuples are preferred: all versions have them, and the Grants API is a preview.
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
from lakewright.lakekeeper.api.management import permissions, projects, roles, warehouses

MAX_ENTRIES_PER_CALL = 100
"""Maximum number of entries in one call."""

MAX_ATTEMPTS = 5
"""Number of tries of a change while other processes change the same grants."""

Plan = Callable[[frozenset[GrantEntry]], tuple[set[GrantEntry], set[GrantEntry]]]
"""Returns the entries to add and the entries to remove, given the current entries."""


def list_grants(client: Client, on: Object) -> frozenset[GrantEntry] | None:
    """Return all grants on an object itself; None if the object does not exist."""
    try:
        return permissions.list_grants(client, on) if _has_tuples(client, on) else _list_by_api(client, on)
    except NoSuchPathError as unknown:
        if not client.server().keeps_tuples:  # with tuples the server has the path, so a gateway responded
            unknown.add(_perhaps_none(client))
        raise
    except NotFoundError:
        return None
    except ForbiddenError:
        if not is_gone(client, on):
            raise
        return None


def get_cached(client: Client, on: Object) -> frozenset[GrantEntry] | None:
    """Return what `held` returns, from one call for all readers of a refresh."""
    # Readers know different ids of an object: some have the ids of its project and warehouse, too.
    project = on.project_id if on.kind == "project" else None
    return client.lists.get_cached((client, "grants", permissions.path(on), project), lambda: list_grants(client, on))


def add(client: Client, on: Object, entry: GrantEntry) -> None:
    """Grant one privilege. A principal that has it keeps it."""
    try:
        _send(client, on, [entry], [])
    except RefusedError as refused:
        if refused.kind != "TupleAlreadyExistsError":
            raise


def remove(client: Client, on: Object, entry: GrantEntry) -> None:
    """Revoke one privilege. Succeeds if it is not granted, or if the object does not exist."""
    try:
        _send(client, on, [], [entry])
    except NotFoundError:
        pass
    except ForbiddenError:
        if not is_gone(client, on):
            raise


def converge(client: Client, on: Object, plan: Plan) -> frozenset[GrantEntry] | None:
    """Change grants as planned, in one transaction of the server if they fit into one call.

    Returns:
        The grants after the change; None if the object does not exist.
    """
    for tries_left in reversed(range(MAX_ATTEMPTS)):
        live_grants = list_grants(client, on)
        if live_grants is None:
            return None
        writes, deletes = plan(live_grants)
        writes, deletes = writes - live_grants, deletes & live_grants
        try:
            _send(client, on, sorted(writes), sorted(deletes))
        except RefusedError as refused:
            if refused.kind not in permissions.CONFLICTS or not tries_left:
                raise
            continue
        return (live_grants | writes) - deletes
    raise AssertionError("the last try returns or raises")


def is_gone(client: Client, on: Object) -> bool:
    """Return whether a refusal means that the object does not exist: OpenFGA checks first and lacks it."""
    try:
        match on.kind:
            case "server":
                return False
            case "project":
                return projects.read_name(client, on.project_id or "") is None
            case "tag":
                return not has_tag(client, on.project_id or "", on.object_id)
            case "role":
                return roles.get(client, on.project_id or "", on.object_id) is None
            case _:
                warehouse = warehouses.get(client, on.warehouse_id)
                # An inactive warehouse hides its contents.
                shows_content = warehouse is not None and warehouse["status"] == "active"
                is_missing = on.kind != "warehouse" and shows_content and not _has_content(client, on)
                return warehouse is None or is_missing
    except ForbiddenError:
        return False


def _has_content(client: Client, on: Object) -> bool:
    """Return whether a warehouse has a visible namespace, table, view or generic table with this id."""
    try:
        client.json("GET", f"/management/v1/warehouse/{on.warehouse_id}/{on.kind}/{on.object_id}/protection")
    except NotFoundError:
        return False
    return True


def require_stored(client: Client, kind: str) -> None:
    """Refuse grants on a kind of object if the server stores none.

    Raises:
        GrantsUnsupportedError: Neither OpenFGA nor the Grants API of the server stores them.
    """
    server = client.server()
    if not server.keeps_tuples and (kind == "role" or not server.has_grants_api):
        raise _keeps_none(client, kind)


def _has_tuples(client: Client, on: Object) -> bool:
    require_stored(client, on.kind)
    return client.server().keeps_tuples


def _keeps_none(client: Client, kind: str) -> GrantsUnsupportedError:
    server = client.server()
    subject = "grants on roles" if kind == "role" and server.has_grants_api else "grants"
    return GrantsUnsupportedError(
        f"{client.endpoint} stores no {subject}: it runs Lakekeeper {server.version_text} with authorizer"
        f" `{server.authz_backend}`, which does not support them. Users may do all that this authorizer allows."
        " Remove the declaration, or run the server with OpenFGA."
    )


def _perhaps_none(client: Client) -> str:
    """Return why a server with the Grants API may not know its path: its authorizer may not support grants."""
    server = client.server()
    return (
        f"Either a gateway before {client.endpoint} responded, or the authorizer `{server.authz_backend}` of its"
        f" Lakekeeper {server.version_text} does not support grants; then remove the declaration, or run the server"
        " with OpenFGA."
    )


def _send(client: Client, on: Object, writes: Iterable[GrantEntry], deletes: Iterable[GrantEntry]) -> None:
    tuples = _has_tuples(client, on)
    if tuples:
        _check_words(client, on, writes)
    entries = [*((True, entry) for entry in writes), *((False, entry) for entry in deletes)]
    for batch in parts(entries, MAX_ENTRIES_PER_CALL):
        written = [entry for write, entry in batch if write]
        deleted = [entry for write, entry in batch if not write]
        if tuples:
            permissions.write(client, on, written, deleted)
        else:
            _apply(client, on, written, deleted)


def _check_words(client: Client, on: Object, writes: Iterable[GrantEntry]) -> None:
    """Check privileges before the call, since OpenFGA reports an unknown privilege as a malformed body.

    Raises:
        NotGrantableError: A privilege cannot be granted on this kind of object.
    """
    relations = client.server().relations(on.kind)
    for entry in writes:
        if entry.privilege not in relations:
            newer = " in this version" if entry.privilege in RELATIONS[on.kind] else ""
            raise NotGrantableError(
                f"`{entry.privilege}` cannot be granted on a {on.kind} at {client.endpoint}{newer}; expected one of"
                f" {', '.join(relations) or 'none'}"
            )


# The Grants API.


def path(on: Object) -> str:
    """Return the URL path of the grants on an object."""
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


def _list_by_api(client: Client, on: Object) -> frozenset[GrantEntry]:
    return frozenset(
        GrantEntry(grant["privilege"], *next(iter(grant["principal"].items())))
        for page in pages(client, path(on), project=on.project_id)
        for grant in cast(list[dict[str, Any]], page["grants"])
    )


def _apply(client: Client, on: Object, writes: Iterable[GrantEntry], deletes: Iterable[GrantEntry]) -> None:
    body = {"writes": [_entry(entry) for entry in writes], "deletes": [_entry(entry) for entry in deletes]}
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
    response = client.json("GET", f"{path(on)}/grantable-privileges", project=on.project_id)
    return [str(privilege["privilege"]["name"]) for privilege in response["privileges"]]


def _entry(entry: GrantEntry) -> dict[str, Any]:
    return {"privilege": entry.privilege, "principal": {entry.kind: entry.principal}}


TAG_ROOT = "/management/v1/tag-definition"


def find_tag_id(client: Client, project_id: str, name: str) -> str | None:
    """Return the id of a tag by name, ignoring case; None if the project or tag does not exist or is hidden."""
    try:
        for page in pages(client, TAG_ROOT, {"name": name}, project=project_id):
            for tag in cast(list[dict[str, Any]], page["tag-definitions"]):
                if str(tag["name"]).casefold() == name.casefold():
                    return str(tag["id"])
    except NotFoundError:
        pass
    return None


def has_tag(client: Client, project_id: str, definition_id: str) -> bool:
    """Return whether a project has a visible tag with this id."""
    try:
        client.json("GET", f"{TAG_ROOT}/{definition_id}", project=project_id)
    except NotFoundError:
        return False
    return True
