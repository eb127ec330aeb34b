"""Alembic's entry: the connection is handed over by `database.py`; there is no alembic.ini."""

from alembic import context
from lakewright_spark.execution_registry.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table="lakewright_registry_version",
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
