"""Format `polars`: a Python script that opens the catalogs for `pl.scan_iceberg`."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.pyiceberg_yaml import CLASSES
from lakewright.config_formats.python_script import PYTHON, render_script
from lakewright.config_formats.values import describe_variables


def _render_script(request: ConfigRequest) -> dict[str, str]:
    usage = (
        "def scan(warehouse: str, table: str) -> pl.LazyFrame:\n"
        '    """Return a lazy frame of a table, such as `scan("executions", "raw.events")`."""\n'
        "    loaded = catalogs[warehouse].load_table(table)\n"
        "    # Without options, Polars uses neither the vended keys nor the endpoint.\n"
        '    prefixes = ("s3.", "adls.", "gcs.")\n'
        "    options = {name: value for name, value in loaded.io.properties.items() if name.startswith(prefixes)}\n"
        "    return pl.scan_iceberg(loaded, storage_options=options)\n"
    )
    return {"lakekeeper_polars.py": render_script(request, "import polars as pl", usage)}


FORMAT = ConfigFormat(
    _render_script,
    lambda request: describe_variables(request.config, PYTHON),
    EngineFacts(
        title="Polars",
        version="2.1",
        secrets="`os.environ`",
        refreshes_since=None,
        refresh="no: it copies the credentials when it loads a table",
        has_audience=True,
        default_scope="catalog",
        refreshing=CLASSES,
        tested="`make test-engines`: reads with OAuth2 and vended credentials",
        advice=("write with PyIceberg: catalogs[NAME].load_table(TABLE).append(frame.to_arrow())",),
    ),
)
