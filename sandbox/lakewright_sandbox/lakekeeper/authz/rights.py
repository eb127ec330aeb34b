"""Rights of a user or role, derived from the stored grants and the rules of the model."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property

from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.authz.actions import ACTIONS
from lakewright_sandbox.lakekeeper.authz.hierarchy import find_parent, list_ancestors
from lakewright_sandbox.lakekeeper.authz.membership import list_acting_roles
from lakewright_sandbox.lakekeeper.authz.model import ANYONE, DIRECT, INSIDE, RULES, SELF, Both, Term, Unless
from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.models import GrantRow
from lakewright_sandbox.lakekeeper.database.server_context import ServerContext
from lakewright_sandbox.lakekeeper.protocol.identities import Subject

EVERYONE = Subject("everyone", "*")


class Rights:
    """Rights of one subject, in one session. None is an unauthenticated subject without rights."""

    def __init__(self, server: ServerContext, session: Session, subject: Subject | None) -> None:
        """Read rights of a subject from a session."""
        self._server, self._session, self._subject = server, session, subject
        self._known: dict[tuple[Target, str], bool] = {}

    def may(self, target: Target, action: str) -> bool:
        """Return whether the subject may do an action of the catalog; False for actions that the kind lacks."""
        relation = ACTIONS[target.kind].get(action)
        return relation is not None and self.has(target, relation)

    def sees(self, target: Target) -> bool:
        """Return whether the object is visible to the subject."""
        return "visible" not in RULES[target.kind] or self.has(target, "visible")

    def has(self, target: Target, relation: str) -> bool:
        """Return whether the subject has a relation to the object, granted or derived."""
        key = target, relation
        if key not in self._known:
            self._known[key] = False  # a circular rule adds nothing
            terms = RULES[target.kind].get(relation, ())
            self._known[key] = any(self._holds(target, relation, term) for term in terms)
        return self._known[key]

    def _holds(self, target: Target, relation: str, term: Term) -> bool:
        match term:
            case Both(first, second):
                holds = self._holds(target, relation, first) and self._holds(target, relation, second)
            case Unless(required, forbidding):
                holds = self._holds(target, relation, required) and not self._holds(target, relation, forbidding)
            case str():
                holds = self._simply_holds(target, relation, term)
        return holds

    def _simply_holds(self, target: Target, relation: str, term: str) -> bool:
        if term.startswith("^"):
            parent = find_parent(self._server, self._session, target)
            return parent is not None and self.has(parent, term[1:])
        match term:
            case _ if term == DIRECT:
                return relation in self._granted[target]
            case _ if term == INSIDE:
                return target in self._above_described
            case _ if term == SELF:
                return self._subject == target
            case _ if term == ANYONE:
                return self._subject is not None
            case _:
                return self.has(target, term)

    @cached_property
    def _granted(self) -> dict[Target, set[str]]:
        """Return the grants to the subject, to its roles and to everyone, by object."""
        subjects = [EVERYONE]
        if self._subject is not None:
            subjects += [self._subject, *list_acting_roles(self._session, self._subject)]
        granted: dict[Target, set[str]] = defaultdict(set)
        query = select(GrantRow).where(tuple_(GrantRow.subject_kind, GrantRow.subject_id).in_(subjects))
        for grant in self._session.scalars(query):
            granted[Target(grant.object_kind, grant.object_id)].add(grant.relation)
        return granted

    @cached_property
    def _above_described(self) -> set[Target]:
        """Return all ancestors of objects that the subject can describe."""
        above: set[Target] = set()
        for target in list(self._granted):
            if "describe" in RULES[target.kind] and self.has(target, "describe"):
                above.update(list_ancestors(self._server, self._session, target))
        return above
