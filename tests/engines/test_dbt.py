"""dbt-duckdb with the profile of `--format dbt`, on a catalog that enforces grants."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from lakewright.config_formats.dbt_project import MACROS

from tests.engines.enforced_catalog import GRANTED, NAMESPACE, EnforcedCatalog

PYTHON = os.environ.get("TEST_ENGINES_PYTHON")

pytestmark = pytest.mark.skipif(PYTHON is None, reason="needs the environment of `make test-engines`")

PROJECT = """\
name: numbers
profile: {profile}
flags:
  send_anonymous_usage_stats: false
"""
MODEL = f"{{{{ config(database='{GRANTED}', schema='{NAMESPACE}', materialized='table') }}}}\n"
LOCAL = """\
{{ config(materialized='table', schema='own',
          pre_hook="{% do adapter.drop_relation(this.incorporate(type='table')) %}") }}
SELECT n FROM {{ ref('second') }}
"""


@pytest.fixture
def project(enforced_catalog: EnforcedCatalog, tmp_path: Path) -> Path:
    """Return a dbt project with the files of `--format dbt`, and a third model outside the warehouse."""
    enforced_catalog.write_files("dbt", tmp_path)
    (tmp_path / "dbt_project.yml").write_text(PROJECT.format(profile=enforced_catalog.config.tenant))
    (tmp_path / "macros").mkdir()
    (tmp_path / MACROS).rename(tmp_path / "macros" / MACROS)
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "first.sql").write_text(MODEL + "SELECT range AS n FROM range(3)")
    (tmp_path / "models" / "second.sql").write_text(MODEL + "SELECT n + 10 AS n FROM {{ ref('first') }}")
    (tmp_path / "models" / "third.sql").write_text(LOCAL)
    return tmp_path


def test_models_are_built_twice(project: Path, enforced_catalog: EnforcedCatalog, duckdb_home: Path) -> None:
    """A second `dbt run` replaces the tables of the first."""
    for _ in range(2):
        command = [str(Path(str(PYTHON)).with_name("dbt")), "--no-use-colors", "run"]
        environ = enforced_catalog.environment(duckdb_home)
        done = subprocess.run(command, env=environ, cwd=project, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:]
        assert "OK created sql table model main_own.third" in done.stdout, "the macros change nothing elsewhere"
        assert enforced_catalog.secret not in done.stdout

    assert enforced_catalog.read_table("first") == [0, 1, 2]
    assert enforced_catalog.read_table("second") == [10, 11, 12]
