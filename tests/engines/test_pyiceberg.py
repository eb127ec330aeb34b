"""Plain PyIceberg, configured by `--format pyiceberg`, on a catalog that enforces grants."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lakewright.config_formats.config_format import ConfigRequest
from lakewright.config_formats.registry import load_format

from tests.engines.enforced_catalog import EnforcedCatalog

SCRIPT = """
import sys
import pyarrow as pa
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import RESTError

rows = pa.table({"n": pa.array([1, 2, 3], pa.int64())})
table = load_catalog("granted-data").create_table("operator-port-result.numbers", schema=rows.schema)
table.append(rows)
print(load_catalog("granted-data").load_table("operator-port-result.numbers").scan().to_arrow().num_rows, "rows")
try:
    load_catalog("foreign").create_table("operator-port-result.numbers", schema=rows.schema)
except RESTError as error:
    assert "NoSuchWarehouse" in str(error), error
    print("foreign is hidden")
assert not any(name.startswith("lakewright") for name in sys.modules)
assert "s3.session-token" in table.io.properties, "the credentials are vended"
"""


def test_write_and_read(enforced_catalog: EnforcedCatalog, tmp_path: Path) -> None:
    """No class of this project is loaded; the warehouse without a grant refuses the client."""
    for name, text in load_format("pyiceberg").render(ConfigRequest(enforced_catalog.config, "0.12")).items():
        (tmp_path / name).write_text(text)
    credential = f"{enforced_catalog.config.auth.model_dump()['client_id']}:{enforced_catalog.secret}"
    variables = {f"PYICEBERG_CATALOG__{name}__CREDENTIAL": credential for name in ("GRANTED_DATA", "FOREIGN")}
    environ = {**os.environ, **variables, "PYICEBERG_HOME": str(tmp_path)}

    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environ, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["3 rows", "foreign is hidden"]
