"""Wheels, built once for the folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.wheel_project import build_wheels


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return build_wheels(tmp_path_factory.mktemp("wheels"))
