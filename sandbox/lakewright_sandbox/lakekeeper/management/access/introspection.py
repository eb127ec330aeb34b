"""Inspect rights: own rights freely, other rights with the right to read assignments."""

from __future__ import annotations

from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS
from lakewright_sandbox.lakekeeper.authz.caller import actor
from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.identities import Subject
from lakewright_sandbox.lakekeeper.protocol.versions import select_actions
from lakewright_sandbox.lakekeeper.server.server import Lakekeeper


def check_inspectable(server: Lakekeeper, session: Session, target: Target, subject: Subject | None) -> None:
    """Raise 403 `CannotInspectPermissions` if the caller may not inspect a subject's rights."""
    if not server.authorizer.enforces or subject in (None, actor().subject):
        return
    guarded = Target("server", server.server_id) if target.kind == "user" else target
    if not server.authorizer.rights(session).has(guarded, "read_assignments"):
        message = f"Not allowed to inspect permissions on {target.kind} `{target.id}` of other principals"
        raise ApiError(403, "CannotInspectPermissions", message)


def list_allowed_actions(server: Lakekeeper, session: Session, target: Target, subject: Subject | None) -> list[str]:
    """Return the catalog actions that a subject, by default the caller, may do on the object."""
    check_inspectable(server, session, target, subject)
    names = select_actions(server.settings.version, target.kind, ACTIONS[target.kind])
    if not server.authorizer.enforces:
        return names
    rights = server.authorizer.rights(session, subject)
    return [name for name in names if rights.may(target, name)]
