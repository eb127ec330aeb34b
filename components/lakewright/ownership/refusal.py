"""Messages that refuse a change, a deletion or an adoption because of an object's mark."""

from __future__ import annotations

from lakewright.ownership.consent import Consent
from lakewright.ownership.mark import Claimant, OwnershipMark


def format_change_refusal(title: str, mark: OwnershipMark, claimant: Claimant, consent: Consent) -> str:
    """Return the message for an object whose mark names another stack than the running stack.

    Args:
        title: The object, with its place.
        mark: The object's mark.
        claimant: The running stack.
        consent: The consent that would let the running stack own the object.
    """
    stack = format_stack_option(claimant)
    return (
        f"{title} belongs to {describe_owner(mark, claimant)}; this is {describe_claimant(claimant)}. Nothing was"
        f" changed. To give up these resources, run `lakewright stack forget{stack}`, which touches no server."
        f" If this stack is the owner under a new name, run `lakewright adopt consent{stack} {consent}`, then"
        " `lakewright up`."
    )


def format_adoption_refusal(title: str, mark: OwnershipMark, claimant: Claimant, consent: Consent) -> str:
    """Return the message for an existing object that `adopt: true` alone does not take over.

    Args:
        title: The object, with its place.
        mark: The object's mark.
        claimant: The running stack.
        consent: The consent that lets the running stack adopt the object.
    """
    owner = f"belongs to {describe_owner(mark, claimant)}" if mark.names_owner else "has no mark of a stack"
    return (
        f"{title} exists already and {owner}, so `adopt` in the spec is not sufficient. Check its contents. To take"
        f" it over, run `lakewright up --adopt {consent}`, or let its owner run `lakewright adopt"
        f" consent{format_stack_option(claimant)} {consent}`."
    )


def describe_owner(mark: OwnershipMark, claimant: Claimant) -> str:
    """Return the owner of an object for messages."""
    if mark.stack and mark.stack == claimant.stack:
        return f"a stack `{mark.stack}` in another backend, or an earlier stack of this name (record {mark.record})"
    return f"stack `{mark.stack}`" if mark.stack else f"another stack (record {mark.record})"


def describe_claimant(claimant: Claimant) -> str:
    """Return the running stack for messages."""
    record = f" (record {claimant.record})" if claimant.record else ""
    return f"stack `{claimant.stack}`{record}" if claimant.stack else f"a stack whose name is not known{record}"


def format_stack_option(claimant: Claimant) -> str:
    """Return ` --stack NAME` for a command, or an empty string if the name is not known."""
    return f" --stack {claimant.stack.rpartition('/')[2]}" if claimant.stack else ""
