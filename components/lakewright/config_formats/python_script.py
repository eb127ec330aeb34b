"""Python scripts that open the catalogs with PyIceberg, for libraries that take a PyIceberg catalog or table."""

from __future__ import annotations

import json
from typing import Any

from lakewright_spark.catalog import CatalogConfig

from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.properties import select_properties
from lakewright.config_formats.values import Expression, SecretSyntax, gather_values

_MARK = "\x00"
"""Surrounds the names of variables in values, before the values become Python expressions."""
PYTHON = SecretSyntax(lambda variable: f"{_MARK}{variable}{_MARK}")


def list_plain_options(config: CatalogConfig, name: str, syntax: SecretSyntax) -> dict[str, Any]:
    """Return PyIceberg's properties of a warehouse without classes of this project."""
    options = config.pyiceberg(name)
    # PyIceberg's own file IO trusts the system's authorities only; SSL_CERT_FILE and AWS_CA_BUNDLE add others.
    ours = {"auth", "py-io-impl", "lakewright.ca-bundle"}
    plain = {key: value for key, value in options.items() if key not in ours}
    if config.kind == "jdbc":
        return plain
    return plain | select_properties("pyiceberg", "0", gather_values(config, config.warehouse(name), syntax))


def render_catalogs(request: ConfigRequest) -> str:
    """Return the statement that fills `catalogs`, a dictionary of PyIceberg catalogs by warehouse."""
    config = request.config
    lines = ["catalogs = {\n"]
    for warehouse in config.warehouses:
        options = (
            config.pyiceberg(warehouse.name)
            if request.refreshing
            else list_plain_options(config, warehouse.name, PYTHON)
        )
        name = json.dumps(warehouse.name)
        lines.append(f"    {name}: load_catalog(\n        {name},\n        **{{\n")
        lines += [f"            {json.dumps(key)}: {_to_python(value)},\n" for key, value in options.items()]
        lines.append("        },\n    ),\n")
    lines.append("}\n")
    return "".join(lines)


def render_script(request: ConfigRequest, library: str, usage: str) -> str:
    """Return a script that imports a library, opens the catalogs, and defines a function.

    Args:
        request: The configuration and options.
        library: Statement that imports the library.
        usage: The function.
    """
    catalogs = render_catalogs(request)
    standard = "import os\n\n" if "os.environ" in catalogs else ""
    return f"{standard}{library}\nfrom pyiceberg.catalog import load_catalog\n\n{catalogs}\n\n{usage}"


def _to_python(value: Any) -> Expression:
    """Return a Python expression. Marked variables are read from the environment when the script runs."""
    if not isinstance(value, str):
        return Expression(repr(value))
    if _MARK not in value:
        return Expression(json.dumps(value))
    before, variable, after = value.split(_MARK)
    parts = [json.dumps(before)] if before else []
    parts.append(f"os.environ[{json.dumps(variable)}]")
    return Expression(" + ".join(parts + ([json.dumps(after)] if after else [])))
