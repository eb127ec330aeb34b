"""`--configs FOLDER` refuses a folder without configurations: a typo in its name would pass for success."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright_spark.cli import app
from lakewright_spark.errors import ConfigMissingError
from typer.testing import CliRunner


@pytest.mark.parametrize("name", ["empty", "missing"])
def test_folder_without_configurations_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    refused = CliRunner().invoke(app, ["usage", "--configs", str(tmp_path / name), "--json"])
    assert isinstance(refused.exception, ConfigMissingError)
    assert f"{name}: expected a folder of catalog configurations NAME.json, found none" in str(refused.exception)
