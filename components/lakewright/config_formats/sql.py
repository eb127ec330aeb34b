"""SQL text of configurations: literals, identifiers, and lists of properties."""

from __future__ import annotations

from collections.abc import Mapping

from lakewright.config_formats.values import Expression


def quote_literal(value: str) -> str:
    """Return a string literal, or an expression as it is."""
    return str(value) if isinstance(value, Expression) else "'" + value.replace("'", "''") + "'"


def quote_escaped_literal(value: str) -> str:
    r"""Return a string literal of a dialect in which `\` begins an escape sequence."""
    return quote_literal(value.replace("\\", "\\\\"))


def quote_identifier(name: str, quote: str = '"') -> str:
    """Return an identifier in quotes."""
    return quote + name.replace(quote, quote * 2) + quote


def join_assignments(properties: Mapping[str, str], *, assign: str = " = ", quote_names: str = "") -> str:
    """Return `NAME = 'value'` of each property, a line each.

    Args:
        properties: Values by name.
        assign: Text between name and value.
        quote_names: Quote around names; empty for none.
    """
    escaped = quote_names in {'"', "'"}
    quote_value = quote_escaped_literal if escaped and quote_names == '"' else quote_literal
    return ",\n".join(
        f"  {quote_names}{name}{quote_names}{assign}{quote_value(value)}" for name, value in properties.items()
    )
