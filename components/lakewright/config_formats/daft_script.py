"""Format `daft`: a Python script that opens the catalogs for `daft.read_iceberg`."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat, ConfigRequest, EngineFacts
from lakewright.config_formats.pyiceberg_yaml import CLASSES
from lakewright.config_formats.python_script import PYTHON, render_script
from lakewright.config_formats.values import describe_variables


def _render_script(request: ConfigRequest) -> dict[str, str]:
    usage = (
        "def read(warehouse: str, table: str) -> daft.DataFrame:\n"
        '    """Return a data frame of a table, such as `read("executions", "raw.events")`."""\n'
        "    return daft.read_iceberg(catalogs[warehouse].load_table(table))\n"
    )
    return {"lakekeeper_daft.py": render_script(request, "import daft", usage)}


FORMAT = ConfigFormat(
    _render_script,
    lambda request: describe_variables(request.config, PYTHON),
    EngineFacts(
        title="Daft",
        version="0.7",
        secrets="`os.environ`",
        refreshes_since=None,
        refresh="no: it copies the credentials when it loads a table",
        has_audience=True,
        default_scope="catalog",
        refreshing=CLASSES,
        tested="`make test-engines`: writes and reads with OAuth2 and vended credentials",
        advice=("write with frame.write_iceberg(catalogs[NAME].load_table(TABLE))",),
    ),
)
