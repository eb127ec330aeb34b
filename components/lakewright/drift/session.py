"""Data that all scanners of one run share."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from lakewright.drift.model import Actor, Difference, DifferenceKind
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.list_cache import ListCache, SharedAnswers
from lakewright.project_files.stack_files import raw_environment
from lakewright.validation.moment import Clock, read_clock

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject

T = TypeVar("T")
R = TypeVar("R")

DEFAULT_PARALLEL = 32
"""Number of concurrent requests of a scanner."""


@dataclass(frozen=True)
class StackResource:
    """A resource of a stack, and the provider that manages it."""

    stack: str
    tenant: str
    environment: str
    state: ResourceState
    provider: ResourceState | None = None
    """The provider resource; None if the state does not have it."""
    updated: str = ""
    """Time of the stack's last update, RFC 3339, UTC."""
    parent: ResourceState | None = None
    """The component that the resource belongs to; None if the state does not have it."""

    @property
    def name(self) -> str:
        """Name of the resource in the program."""
        return self.state.urn.rpartition("::")[2]

    def difference(
        self, path: str, kind: DifferenceKind, *, declared_value: Any, found_value: Any, actor: Actor | None = None
    ) -> Difference:
        """Return a difference of the resource; an empty path is the whole object."""
        return Difference(
            tenant=self.tenant,
            stack=self.stack,
            urn=self.state.urn,
            type=self.state.type,
            resource=self.name,
            property=path,
            declared=declared_value,
            found=found_value,
            kind=kind,
            actor=actor,
        )


class ScanSession:
    """Data of one run over many stacks. Thread-safe."""

    def __init__(self, project: PulumiProject, parallel: int = DEFAULT_PARALLEL, clock: Clock = read_clock) -> None:
        """Start a run over stacks of a project. `clock` is the time with which ends are compared."""
        self.clock = clock
        self.project = project
        self.parallel = parallel
        self.clients = ClientPool(ListCache(max_age=math.inf), limit=threading.BoundedSemaphore(parallel))
        """Clients of Lakekeeper servers, whose lists all stacks share. They send `parallel` requests at a time."""
        self.shared = SharedAnswers(max_age=math.inf)
        """Connections that the run's scanners and searches share, such as the clients of an AWS account."""
        self._lock = threading.Lock()
        self._configs: dict[str, Mapping[str, str]] = {}

    def close(self) -> None:
        """Close the connections to Lakekeeper servers."""
        self.clients.close()

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """Call a function for each item in threads. Yield the results in order."""
        with ThreadPoolExecutor(max_workers=self.parallel, thread_name_prefix="drift") as pool:
            yield from pool.map(function, items)

    def config(self, stack: str) -> Mapping[str, str]:
        """Return a stack's decrypted configuration by full key. Reading it derives the stack's key, in 0.4 s.

        Raises:
            EngineError: The configuration cannot be read or decrypted.
        """
        with self._lock:
            values = self._configs.get(stack)
        if values is None:
            values = self.project.configuration(stack).values
            with self._lock:
                self._configs[stack] = values
        return values

    def is_sandbox(self, environment: str) -> bool:
        """Return whether an environment is a sandbox, which has its own providers."""
        return isinstance(raw_environment(self.project.root, environment).get("sandbox"), str)
