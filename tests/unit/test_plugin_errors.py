"""Errors of plugins that a note explains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from lakewright.cli.engines.plugin_errors import PluginErrorExplainingEngine
from lakewright_engine import Operation, Result
from lakewright_engine.project.project import PulumiProject

UNREACHABLE = (
    "error: failed to read resource state due to unreachable cluster. If the cluster was deleted, you can remove this "
    "resource from Pulumi state by rerunning the operation with the PULUMI_K8S_DELETE_UNREACHABLE environment variable "
    'set to "true"'
)
OPERATION = Operation("preview", PulumiProject(Path("/p/Pulumi.yaml"), "conf"), "dev", refresh=True)


@dataclass
class FailingEngine:
    """An engine whose runs report messages."""

    messages: list[str] = field(default_factory=list[str])

    def run(self, operation: Operation, on_event: Callable[[Any], None], /) -> Result:
        """Return a failed result."""
        return Result(1, messages=list(self.messages))


@pytest.mark.parametrize(("message", "is_explained"), [(UNREACHABLE, True), ("error: conflict", False)])
def test_refresh_without_a_cluster_is_explained(message: str, *, is_explained: bool) -> None:
    result = PluginErrorExplainingEngine(FailingEngine([message])).run(OPERATION, print)
    notes = [line for line in result.messages if line.startswith("note: ")]
    assert result.messages[0] == message
    assert (len(notes) == 1 and "`lakewright drift`" in notes[0]) == is_explained
