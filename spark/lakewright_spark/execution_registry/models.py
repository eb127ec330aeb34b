"""The registry's tables. Their history is in `migrations`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, ForeignKey, Index, Integer, String, Text, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator


class UtcDateTime(TypeDecorator[datetime]):
    """A moment. SQLite keeps no zone, so it is UTC that is written, and UTC that is read."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Convert a value to UTC for the database."""
        _ = dialect
        return value and value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Any) -> datetime | None:
        """Convert a value of the database to UTC."""
        _ = dialect
        return value and (value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC))


class Base(DeclarativeBase):
    """Base of the registry's tables."""

    type_annotation_map = {datetime: UtcDateTime}


_ID = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself in an INTEGER key alone


class ExecutionRow(Base):
    """One execution of a tenant."""

    __tablename__ = "executions"
    __table_args__ = (
        UniqueConstraint("tenant", "workflow", "execution", name="uq_executions"),
        Index("ix_executions_of_unit", "tenant", "computing_unit", "workflow"),
    )

    id: Mapped[int] = mapped_column(_ID, primary_key=True)
    tenant: Mapped[str] = mapped_column(String(128))
    workflow: Mapped[int] = mapped_column(BigInteger)
    execution: Mapped[int] = mapped_column(BigInteger)
    computing_unit: Mapped[str | None] = mapped_column(String(128))
    warehouse: Mapped[str | None] = mapped_column(String(256))
    submitter: Mapped[str | None] = mapped_column(String(256))
    status: Mapped[str] = mapped_column(String(16))
    started_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    replaced_at: Mapped[datetime | None]
    error: Mapped[str | None] = mapped_column(Text)
    tables: Mapped[list[TableRow]] = relationship(cascade="all, delete-orphan", order_by="TableRow.uri")


class TableRow(Base):
    """One table that an execution wrote."""

    __tablename__ = "execution_tables"

    execution_id: Mapped[int] = mapped_column(_ID, ForeignKey("executions.id", ondelete="CASCADE"), primary_key=True)
    uri: Mapped[str] = mapped_column(String(1024), primary_key=True)
    rows: Mapped[int | None] = mapped_column(BigInteger)
    bytes: Mapped[int | None] = mapped_column(BigInteger)
