"""Facts that a script gets about its run; no environment variable contains a secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.errors import ConfigMissingError
from lakewright_spark.run.facts import SECRETS_VARIABLE, VARIABLE, ExecutionFacts

FACTS = ExecutionFacts(workflow=1, execution=2, warehouse="lake", conf={"spark.a": "b", "spark.my.password": "s3cr3t"})


def test_no_secret_in_environment_variables(tmp_path: Path) -> None:
    variables = FACTS.to_environment(tmp_path)

    assert "s3cr3t" not in repr(variables)
    assert ExecutionFacts.from_environment(variables) == FACTS


def test_file_of_secrets_is_private(tmp_path: Path) -> None:
    file = Path(FACTS.to_environment(tmp_path)[SECRETS_VARIABLE])

    assert file.parent == tmp_path
    assert file.stat().st_mode & 0o777 == 0o600


def test_no_token_of_a_server_in_environment(tmp_path: Path) -> None:
    facts = FACTS.model_copy(update={"remote": "sc://unit.example:15002/;use_ssl=true;token=t0k3n", "conf": {}})

    variables = facts.to_environment(tmp_path)

    assert "t0k3n" not in repr(variables)
    assert ExecutionFacts.from_environment(variables) == facts


def test_run_without_secrets_has_no_file(tmp_path: Path) -> None:
    facts = FACTS.model_copy(update={"conf": {"spark.a": "b"}, "remote": "sc://unit.example:15002"})

    variables = facts.to_environment(tmp_path)

    assert list(variables) == [VARIABLE]
    assert list(tmp_path.iterdir()) == []
    assert ExecutionFacts.from_environment(variables) == facts


def test_missing_file_of_secrets_is_reported(tmp_path: Path) -> None:
    variables = FACTS.to_environment(tmp_path)
    Path(variables[SECRETS_VARIABLE]).unlink()

    with pytest.raises(ConfigMissingError, match="expected the secrets of this run"):
        ExecutionFacts.from_environment(variables)
