"""The queries of a view. Specs import this module, which loads no SDK of Pulumi."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from lakewright.lakekeeper.table.schema.columns import is_observed

_DIALECT = re.compile(r"[a-z][a-z0-9_-]{0,63}")


def _check_sql(sql: dict[str, str], info: ValidationInfo) -> dict[str, str]:
    """Return the definitions without surrounding white space, which engines ignore."""
    if is_observed(info):
        return sql
    for dialect, text in sql.items():
        if not _DIALECT.fullmatch(dialect):
            raise ValueError(f"{dialect!r}: expected the name of a dialect in lower case, such as `spark` or `trino`")
        if not text.strip():
            raise ValueError(f"`{dialect}`: expected a query, found an empty text")
    return {dialect: text.strip() for dialect, text in sql.items()}


SqlByDialect = Annotated[dict[str, str], Field(min_length=1), AfterValidator(_check_sql)]
"""Query of a view by SQL dialect. An engine reads the query of its own dialect only."""
