"""OwnershipMark: the stack that owns an object, as the object itself records it.

Buckets, IAM roles and KMS keys have the mark in tags. A Lakekeeper project has it in the description of its record role
(`ownership.record_role`), since projects and warehouses of Lakekeeper 0.11 to 0.14 have no property of free text.
A mark of a project covers everything in the project. A bucket's mark covers its key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, cast

from lakewright.errors import LakewrightError

STACK_TAG = "lakewright:stack"
"""Tag: the owning stack, as `PROJECT/STACK`."""
RECORD_TAG = "lakewright:record"
"""Tag: id of the record of the owning stack. Stacks of one name in different backends have different ids."""
ADOPT_TAG = "lakewright:adopt"
"""Tag: the stack that may adopt the object, as `PROJECT/STACK`. `lakewright adopt consent` writes it."""
MARK_TAGS = (STACK_TAG, RECORD_TAG, ADOPT_TAG)

VERSION = 1
"""Version of the mark in a record role."""


class UnreadableMarkError(LakewrightError, ValueError):
    """A record role has a description that is not a mark of this version.

    A ValueError too, as of any text that a parser refuses.
    """


class Ownership(StrEnum):
    """Relation of a stack to an object, according to the object's mark."""

    UNMARKED = "unmarked"
    """The owner is not recorded. A stack may change such an object in its state, and needs consent to adopt it."""
    OWN = "own"
    """The mark names the stack."""
    CONSENTED = "consented"
    """The mark names another stack or none, and permits this stack to adopt the object."""
    FOREIGN = "foreign"
    """The mark names another stack."""


@dataclass(frozen=True)
class Claimant:
    """A stack that wants to change, delete or adopt an object."""

    stack: str | None = None
    """The running stack as `PROJECT/STACK`; None if it cannot be found."""
    record: str | None = None
    """Id of the stack's tenant record; None if the caller does not know it."""


@dataclass(frozen=True)
class OwnershipMark:
    """The owner of an object, and the stack that may adopt it."""

    stack: str | None = None
    """The owner as `PROJECT/STACK`. Objects of earlier versions have a record id only."""
    record: str | None = None
    """Id of the owner's tenant record."""
    adopt: str | None = None
    """The stack that may adopt the object, as `PROJECT/STACK`."""

    @property
    def names_owner(self) -> bool:
        """Return whether the mark says whose object it is. A mark may contain a consent alone."""
        return bool(self.stack or self.record)

    def compare(self, claimant: Claimant) -> Ownership:
        """Return the relation of a stack to the object.

        Stack and record id are compared as far as both sides have them. A copy of a state has the same record id and
        another stack; a stack of the same name in another backend has another record id.
        """
        pairs = [
            (owner, claim)
            for owner, claim in ((self.stack, claimant.stack), (self.record, claimant.record))
            if owner and claim
        ]
        if pairs and all(owner == claim for owner, claim in pairs):
            return Ownership.OWN
        if self.adopt and self.adopt == claimant.stack:
            return Ownership.CONSENTED
        return Ownership.FOREIGN if pairs else Ownership.UNMARKED

    def permit(self, stack: str) -> OwnershipMark:
        """Return the mark with the consent that a stack adopts the object."""
        return replace(self, adopt=stack)

    def remove_consent(self) -> OwnershipMark:
        """Return the mark of the owner alone."""
        return replace(self, adopt=None)

    def to_tags(self) -> dict[str, str]:
        """Return the mark as tags of AWS."""
        tags = {STACK_TAG: self.stack, RECORD_TAG: self.record, ADOPT_TAG: self.adopt}
        return {name: value for name, value in tags.items() if value}

    def to_description(self) -> str:
        """Return the mark as the description of a record role: JSON with `version`, `stack`, `record`, `adopt`."""
        fields = {"version": VERSION, "stack": self.stack, "record": self.record, "adopt": self.adopt}
        return json.dumps({name: value for name, value in fields.items() if value})


def parse_tags(tags: Mapping[str, str]) -> OwnershipMark:
    """Return the mark in the tags of an AWS object; an empty mark if there is none."""
    return OwnershipMark(tags.get(STACK_TAG) or None, tags.get(RECORD_TAG) or None, tags.get(ADOPT_TAG) or None)


def parse_description(text: str | None) -> OwnershipMark:
    """Return the mark in the description of a record role.

    Raises:
        UnreadableMarkError: The text is not a mark, or one of a later version. A caller must treat it as a possible
            owner.
    """
    try:
        fields = json.loads(text or "")
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise UnreadableMarkError("expected JSON with `version`, `stack` and `record`")
    mark = cast(dict[str, Any], fields)
    if mark.get("version") != VERSION:
        raise UnreadableMarkError(f"expected a mark of version {VERSION}; it has {mark.get('version')!r}")
    values = [mark.get(name) for name in ("stack", "record", "adopt")]
    if any(value is not None and not isinstance(value, str) for value in values):
        raise UnreadableMarkError("expected text as `stack`, `record` and `adopt`")
    return OwnershipMark(*values)


def format_stack(project: str, stack: str) -> str:
    """Return the name of a stack in marks: `PROJECT/STACK`."""
    return f"{project}/{stack}"
