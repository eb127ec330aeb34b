"""Refuse a run that would create, adopt or delete what another stack of the backend has."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

from lakewright.cli.ownership.state_owners import OtherOwner, find_other_owners
from lakewright.errors import LakewrightError
from lakewright.ownership.consent import Consent, ConsentKind
from lakewright.ownership.mark import Claimant, Ownership, format_stack

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.cli.ownership.server_access import ServerAccess


class OwnedElsewhereError(LakewrightError):
    """Another stack has objects that this stack would create, adopt or delete. Nothing was changed."""


def refuse_owned_objects(
    access: ServerAccess, stack: str, consents: Collection[Consent], *, deletes: bool = False
) -> None:
    """Check that no other stack of the backend has what this stack would create, adopt or delete.

    The other stack's state does not matter if the operator permits the adoption, or if the object's mark names this
    stack or permits it. A warning then says how to make the other stack forget the object.

    Args:
        access: The project, and its environments and secrets.
        stack: The stack.
        consents: Objects that the operator permits this run to adopt.
        deletes: Whether the run deletes the stack's objects.

    Raises:
        OwnedElsewhereError: Another stack has an object, or may have it.
    """
    refusals: list[str] = []
    for owner in find_other_owners(access, stack, deletes=deletes):
        title = describe_object(owner.consent)
        if owner.consent in consents or _is_permitted(access, stack, owner.consent):
            state = "may be" if owner.problem else "is"
            print(
                f"warning: {title} {state} in the state of stack `{owner.name}`, too. After this run,"
                f" {_forget(owner)}.",
                file=sys.stderr,
            )
        else:
            refusals.append(_refusal(access.project, stack, owner, title))
    if refusals:
        raise OwnedElsewhereError("\n".join([*refusals, "Nothing was changed."]))


def _refusal(project: PulumiProject, stack: str, owner: OtherOwner, title: str) -> str:
    adopt = f"lakewright up --stack {stack} --adopt {owner.consent}"
    if owner.problem:
        return (
            f"{title} may be in the state of stack `{owner.name}`, which cannot be read: {owner.problem}. Repair that"
            f" state. If that stack does not have it, run `{adopt}`."
        )
    return (
        f"{title} is in the state of stack `{owner.name}`; this is stack `{format_stack(project.name, stack)}`."
        " Only one"
        f" stack may own it. If `{owner.stack}` gives it up, {_forget(owner)} and then `{adopt}`."
    )


def _forget(owner: OtherOwner) -> str:
    """Return the command that makes a stack forget its objects."""
    return f"run `lakewright stack forget --stack {owner.stack}` in project `{owner.project}`"


def describe_object(consent: Consent) -> str:
    """Return the object of a consent for messages."""
    match consent.kind:
        case ConsentKind.PROJECT:
            return f"project `{consent.name}` of this Lakekeeper"
        case _:
            return f"{consent.kind} `{consent.name}`"


def _is_permitted(access: ServerAccess, stack: str, consent: Consent) -> bool:
    """Return whether the object's mark names this stack, or permits its adoption. False if no mark can be read."""
    from lakewright.cli.ownership.server_marks import open_server_marks  # noqa: PLC0415 - slow to load

    try:
        mark = open_server_marks(access, stack).read(consent)
    except LakewrightError:
        return False
    claimant = Claimant(format_stack(access.project.name, stack))
    return mark.compare(claimant) in {Ownership.OWN, Ownership.CONSENTED}
