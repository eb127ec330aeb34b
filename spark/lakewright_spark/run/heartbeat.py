"""Heartbeats of an execution in the registry. A registry that fails or hangs does not end the execution."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from types import TracebackType

from lakewright_spark.errors import RegistryError
from lakewright_spark.execution_registry.registry import ExecutionRegistry

MAX_RETRY_SECONDS = 5.0
"""Maximum number of seconds until the next attempt after a failed attempt."""
LONGEST_CLOSE = 10.0
"""Seconds that the end of a run waits for a registry that hangs."""


class SignsOfLife:
    """A thread that records heartbeats until the block ends."""

    def __init__(self, registry: ExecutionRegistry, workflow: int, execution: int, *, every: float) -> None:
        """Take `every` for the seconds between two."""
        self._registry, self._workflow, self._execution = registry, workflow, execution
        self._every, self._again = every, min(MAX_RETRY_SECONDS, every)
        self._ended = threading.Event()
        self._failed, self._reason = 0, ""
        self._thread = threading.Thread(target=self._beat, name="signs-of-life", daemon=True)

    def __enter__(self) -> SignsOfLife:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the thread."""
        del kind, error, traceback
        self._ended.set()
        self._thread.join(LONGEST_CLOSE)

    def failures(self) -> list[str]:
        """Return sentences about updates that the registry did not accept."""
        if not self._failed:
            return []
        return [f"{self._failed} signs of life are not in the registry: {self._reason}"]

    def _beat(self) -> None:
        wait = self._every
        while not self._ended.wait(wait):
            wait = self._every
            try:
                self._registry.record_heartbeat(self._workflow, self._execution, datetime.now(UTC))
            except RegistryError as error:
                self._failed += 1
                self._reason, wait = str(error), self._again
