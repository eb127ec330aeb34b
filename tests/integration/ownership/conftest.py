"""A server of commands, and a reader of what stacks may own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.ownership.observed import Observer
from tests.integration.ownership.stack_slots import StackCommands


@pytest.fixture(scope="package")
def commands(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackCommands]:
    """Run commands as forks of one process, which imports for seconds."""
    server = StackCommands.start(sandbox, tmp_path_factory.mktemp("commands"))
    yield server
    server.stop()


@pytest.fixture
def observer(sandbox: Sandbox) -> Iterator[Observer]:
    observer = Observer(sandbox)
    yield observer
    observer.http.close()
