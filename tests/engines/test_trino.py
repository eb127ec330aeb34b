"""Trino with the catalog file of `--format trino`, on a catalog that enforces grants.

`make test-engines` downloads the jars of tests/engines/trino and names their folder in TEST_TRINO_JARS.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.engines.enforced_catalog import GRANTED, NAMESPACE, VARIABLE, EnforcedCatalog
from tests.engines.trino_server import start_server

JARS = os.environ.get("TEST_TRINO_JARS")
JAVA = next(Path("/usr/lib/jvm").glob("*-25-*/bin/java"), None)

pytestmark = [
    pytest.mark.skipif(JARS is None, reason="needs the jars of `make test-engines`"),
    pytest.mark.skipif(JAVA is None, reason="needs Java 25 in /usr/lib/jvm"),
]


def test_write_and_read(enforced_catalog: EnforcedCatalog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, enforced_catalog.secret)
    enforced_catalog.write_files("trino", tmp_path / "catalog")
    enforced_catalog.create_table("before_trino")

    with start_server(tmp_path, jars=Path(str(JARS)), java=Path(str(JAVA))) as trino:
        schema = f'"{GRANTED}"."{NAMESPACE}"'
        assert [NAMESPACE] in trino.execute(f'SHOW SCHEMAS FROM "{GRANTED}"')
        assert trino.execute(f"SELECT n FROM {schema}.before_trino ORDER BY n") == [[1], [2], [3]]
        trino.execute(f"CREATE TABLE {schema}.for_trino AS SELECT n FROM UNNEST(sequence(1, 3)) AS t(n)")
        assert trino.execute(f"SELECT count(*) FROM {schema}.for_trino") == [[3]]

    assert enforced_catalog.read_table("for_trino") == [1, 2, 3]
    assert enforced_catalog.secret not in (tmp_path / "server.log").read_text()
