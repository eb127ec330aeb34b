"""Executions and the tables that they wrote."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ID = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "executions",
        sa.Column("id", _ID, primary_key=True),
        sa.Column("tenant", sa.String(128), nullable=False),
        sa.Column("workflow", sa.BigInteger, nullable=False),
        sa.Column("execution", sa.BigInteger, nullable=False),
        sa.Column("computing_unit", sa.String(128)),
        sa.Column("warehouse", sa.String(256)),
        sa.Column("submitter", sa.String(256)),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("started_at", _MOMENT, nullable=False),
        sa.Column("updated_at", _MOMENT, nullable=False),
        sa.Column("finished_at", _MOMENT),
        sa.Column("replaced_at", _MOMENT),
        sa.Column("error", sa.Text),
        sa.UniqueConstraint("tenant", "workflow", "execution", name="uq_executions"),
    )
    op.create_index("ix_executions_of_unit", "executions", ["tenant", "computing_unit", "workflow"])
    op.create_table(
        "execution_tables",
        sa.Column("execution_id", _ID, sa.ForeignKey("executions.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("uri", sa.String(1024), primary_key=True),
        sa.Column("rows", sa.BigInteger),
        sa.Column("bytes", sa.BigInteger),
    )


def downgrade() -> None:
    """Drop the tables."""
    op.drop_table("execution_tables")
    op.drop_table("executions")
