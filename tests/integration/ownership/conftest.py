"""A server of commands, and a reader of what stacks may own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.ownership.observed import Observer
from tests.integration.ownership.stack_slots import StackCommands


@pytest.fixture
def commands(sandbox: Sandbox, tmp_path: Path) -> Iterator[StackCommands]:
    """Run commands as forks of one process."""
    server = StackCommands.start(sandbox, tmp_path)
    yield server
    server.stop()


@pytest.fixture
def observer(sandbox: Sandbox) -> Iterator[Observer]:
    observer = Observer(sandbox)
    yield observer
    observer.http.close()
