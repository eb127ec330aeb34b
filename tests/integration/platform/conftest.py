"""Platform stacks with rendered manifests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.platform_documents import trial
from tests.platform_project import PlatformStack, create_platform


@pytest.fixture
def platform(tmp_path: Path) -> PlatformStack:
    """A trial's stack that is not deployed yet."""
    return create_platform(tmp_path, trial())


@pytest.fixture(scope="module")
def session_platform(tmp_path_factory: pytest.TempPathFactory) -> PlatformStack:
    """A trial's stack that is deployed. Tests leave it unchanged."""
    stack = create_platform(tmp_path_factory.mktemp("platform"), trial())
    stack.up()
    return stack
