"""MarkedObject: an existing object with its mark, and the rights of a stack on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from lakewright.ownership.consent import Consent, read_consents
from lakewright.ownership.mark import Claimant, Ownership, OwnershipMark
from lakewright.ownership.refusal import format_adoption_refusal, format_change_refusal


@dataclass(frozen=True)
class MarkedObject:
    """An object that exists, or a project that contains it."""

    what: str
    """The marked object with its place, for messages."""
    mark: OwnershipMark
    consents: tuple[Consent, ...]
    """Consents of an operator that permit its adoption. Messages name the first consent."""

    def find_change_problem(self, claimant: Claimant) -> str | None:
        """Return why a stack must not change the object, which is in its state; None if it may.

        An object without a mark belongs to the stack that has it in its state: earlier versions wrote no marks.

        Raises:
            ValueError: `LAKEWRIGHT_ADOPT` has another form than `KIND=NAME`.
        """
        if self.mark.compare(claimant) is not Ownership.FOREIGN or self.is_permitted:
            return None
        return format_change_refusal(self.what, self.mark, claimant, self.consents[0])

    def find_deletion_problem(self, claimant: Claimant) -> str | None:
        """Return why a stack must not delete the object, which is in its state; None if it may.

        A consent in the mark is for an adoption by `up`, which writes a new mark. Another stack of the name may have
        left it with retained data, while an old state of this stack still says that the data is purged.

        Raises:
            ValueError: `LAKEWRIGHT_ADOPT` has another form than `KIND=NAME`.
        """
        return replace(self, mark=self.mark.remove_consent()).find_change_problem(claimant)

    def find_adoption_problem(self, claimant: Claimant) -> str | None:
        """Return why a stack must not adopt the object, although its spec has `adopt`; None if it may.

        Raises:
            ValueError: `LAKEWRIGHT_ADOPT` has another form than `KIND=NAME`.
        """
        if self.mark.compare(claimant) in {Ownership.OWN, Ownership.CONSENTED} or self.is_permitted:
            return None
        return format_adoption_refusal(self.what, self.mark, claimant, self.consents[0])

    def find_interruption_problem(self, claimant: Claimant) -> str | None:
        """Return why a stack must not take over the object as a creation of its interrupted run; None if it may.

        The interrupted run may have ended before its request, so another stack may have made the object since.

        Raises:
            ValueError: `LAKEWRIGHT_ADOPT` has another form than `KIND=NAME`.
        """
        if self.mark.compare(claimant) is not Ownership.FOREIGN:
            return None
        return self.find_adoption_problem(claimant)

    @property
    def is_permitted(self) -> bool:
        """Return whether the operator of this run permits the adoption."""
        return not read_consents().isdisjoint(self.consents)
