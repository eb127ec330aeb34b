"""The stored grants: find, add and remove them, and delete grants on deleted objects."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple, Self

from sqlalchemy import ColumnElement, Select, and_, delete, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from lakewright_sandbox.lakekeeper.database.models import FormerParentRow, GrantRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.clock import new_id
from lakewright_sandbox.lakekeeper.protocol.identities import Subject

TABULAR_KINDS = ("table", "view", "generic-table")


class Target(NamedTuple):
    """An object that grants are on. The server is one too, by its server id.

    The id of a table or view has its warehouse, as in OpenFGA: `WAREHOUSE/TABLE`.
    """

    kind: str
    id: str

    @classmethod
    def name_tabular(cls, kind: str, warehouse_id: str, tabular_id: str) -> Self:
        """Return a table or view by the id of its warehouse and its own id."""
        return cls(kind, f"{warehouse_id}/{tabular_id}")

    @classmethod
    def from_tabular(cls, row: TabularRow) -> Self:
        """Return a table or view by its row."""
        return cls.name_tabular(row.kind, row.warehouse_id, row.id)

    @property
    def is_tabular(self) -> bool:
        """Return whether this is a table or view."""
        return self.kind in TABULAR_KINDS

    @property
    def warehouse_id(self) -> str:
        """Return the warehouse of a table or view."""
        return self.id.partition("/")[0]

    @property
    def object_id(self) -> str:
        """Return the id without a warehouse, as clients know the object."""
        return self.id.rpartition("/")[2] if self.is_tabular else self.id


class Relation(NamedTuple):
    """One grant as a value: the object, the relation and the subject."""

    target: Target
    name: str
    subject: Subject


def grants_on(target: Target, relations: Collection[str] | None = None) -> Select[GrantRow]:
    """Return a query of the direct grants on an object, all or only some relations."""
    query = select(GrantRow).where(GrantRow.object_kind == target.kind, GrantRow.object_id == target.id)
    return query if relations is None else query.where(GrantRow.relation.in_(relations))


def select_grants(subject: Subject) -> Select[GrantRow]:
    """Return a query of the grants to a subject."""
    return select(GrantRow).where(GrantRow.subject_kind == subject.kind, GrantRow.subject_id == subject.id)


def find_grant(session: Session, relation: Relation) -> GrantRow | None:
    """Return a stored grant, None if there is none."""
    return session.scalars(select(GrantRow).where(_is(relation))).first()


def add_grant(session: Session, relation: Relation, now: int) -> bool:
    """Add a grant. Return False if it exists, even since a moment ago."""
    if find_grant(session, relation) is not None:
        return False
    row = GrantRow(
        id=new_id(),
        object_kind=relation.target.kind,
        object_id=relation.target.id,
        relation=relation.name,
        subject_kind=relation.subject.kind,
        subject_id=relation.subject.id,
        created_at=now,
    )
    try:
        with session.begin_nested():
            session.add(row)
    except IntegrityError:
        return False
    return True


def remove_grant(session: Session, relation: Relation) -> bool:
    """Remove a grant. Return False if there is none."""
    return session.scalars(delete(GrantRow).where(_is(relation)).returning(GrantRow.id)).first() is not None


def forget_objects(session: Session, kind: str, ids: Sequence[str]) -> None:
    """Delete the grants on deleted objects, and the grants to deleted roles or users."""
    if not ids:
        return
    on_them = and_(GrantRow.object_kind == kind, GrantRow.object_id.in_(ids))
    to_them = and_(GrantRow.subject_kind == kind, GrantRow.subject_id.in_(ids))
    session.execute(delete(GrantRow).where(or_(on_them, to_them)))


def forget_namespaces(session: Session, ids: Sequence[str]) -> None:
    """Delete the grants on deleted namespaces, and forget them as parents of tables and views that moved."""
    forget_objects(session, "namespace", ids)
    session.execute(update(FormerParentRow).where(FormerParentRow.namespace_id.in_(ids)).values(namespace_id=None))


def forget_tabulars(session: Session, rows: Collection[TabularRow]) -> None:
    """Delete the relations of deleted tables and views."""
    for kind in TABULAR_KINDS:
        forget_objects(session, kind, [Target.from_tabular(row).id for row in rows if row.kind == kind])
    keys = [(row.warehouse_id, row.id) for row in rows]
    moved = tuple_(FormerParentRow.warehouse_id, FormerParentRow.tabular_id).in_(keys)
    session.execute(delete(FormerParentRow).where(moved))


def _is(relation: Relation) -> ColumnElement[bool]:
    return and_(
        GrantRow.object_kind == relation.target.kind,
        GrantRow.object_id == relation.target.id,
        GrantRow.relation == relation.name,
        GrantRow.subject_kind == relation.subject.kind,
        GrantRow.subject_id == relation.subject.id,
    )
