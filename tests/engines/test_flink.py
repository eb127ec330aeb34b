"""PyFlink with the SQL of `--format flink`, on a catalog that enforces grants.

`make test-engines` installs it from tests/engines/flink/requirements.lock and names its Python in TEST_FLINK_PYTHON.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.engines.enforced_catalog import GRANTED, NAMESPACE, EnforcedCatalog
from tests.engines.jars import fetch_jars

PYTHON = os.environ.get("TEST_FLINK_PYTHON")

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs the environment of `make test-engines`")

SCRIPT = f"""
from pathlib import Path
from pyflink.table import EnvironmentSettings, TableEnvironment

environment = TableEnvironment.create(EnvironmentSettings.in_batch_mode())
environment.get_config().set("parallelism.default", "1")
for statement in Path("catalogs.sql").read_text().split(";\\n"):
    if statement.strip():
        environment.execute_sql(statement)
table = "`{GRANTED}`.`{NAMESPACE}`.for_flink"
environment.execute_sql(f"CREATE TABLE {{table}} (n BIGINT)")
environment.execute_sql(f"INSERT INTO {{table}} VALUES (1), (2), (3)").wait()
with environment.execute_sql(f"SELECT n FROM {{table}}").collect() as rows:
    print(sorted(row[0] for row in rows))
"""


def test_write_and_read(enforced_catalog: EnforcedCatalog, tmp_path: Path) -> None:
    enforced_catalog.write_files("flink", tmp_path)
    jars = fetch_jars(Path(__file__).parent / "flink" / "jars.lock")
    variables = {
        "HADOOP_CLASSPATH": os.pathsep.join(map(str, jars)),
        # PyFlink then starts Apache Beam, which is not installed, for Python functions only.
        "_python_worker_execution_mode": "process",
    }
    environ = enforced_catalog.environment(tmp_path) | variables

    command = [str(PYTHON), "-c", SCRIPT]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout.splitlines()[-1] == "[1, 2, 3]"
    assert enforced_catalog.read_table("for_flink") == [1, 2, 3]
