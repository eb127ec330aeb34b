"""Context that the resources of one run share in a process. The provider's base looks it up and passes it on."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.connection.list_cache import ListCache
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.provider.inactive_warehouses import WarehousesToActivate
from lakewright.lakekeeper.provider.ownership_conflicts import Claims, Declarations
from lakewright.validation.moment import Clock, read_clock

NaturalKey = tuple[str, ...]
"""Kind, server and natural key of an object."""


class Taking(StrEnum):
    """The action of a run on an object that it may adopt."""

    UNCHANGED = "unchanged"
    """It is taken over as it is."""
    CHANGED = "changed"
    CREATED = "created"
    """It does not exist."""


class OwnObjects:
    """Objects of the running stack. Safe to share between threads.

    An engine compares each object of the state, and checks the replacement of an object while the old object exists.
    """

    def __init__(self) -> None:
        """Create an empty registry."""
        self._lock = threading.Lock()
        self._ids: set[tuple[str, str]] = set()
        self._absent: set[NaturalKey] = set()
        self._with_adopt: dict[NaturalKey, bool] = {}
        self._compared: dict[NaturalKey, Taking] = {}

    def add(self, kind: str, object_id: str) -> None:
        """Record that an object is in the state."""
        with self._lock:
            self._ids.add((kind, object_id))

    def has(self, kind: str, object_id: str) -> bool:
        """Return whether an object is in the state, among the objects that the engine compared."""
        with self._lock:
            return (kind, object_id) in self._ids

    def note_absent(self, key: NaturalKey) -> None:
        """Record that the object did not exist, so this run created the object found after its request."""
        with self._lock:
            self._absent.add(key)

    def was_absent(self, key: NaturalKey) -> bool:
        """Return whether a lookup before the create request found no object. A failed lookup proves nothing."""
        with self._lock:
            return key in self._absent

    def forget_absence(self, key: NaturalKey) -> None:
        """Drop the record of absence: it proves nothing for a later create."""
        with self._lock:
            self._absent.discard(key)

    def note_adopting_check(self, key: NaturalKey, *, in_state: bool) -> None:
        """Record a declaration with `adopt`, and whether its object is in the state already."""
        with self._lock:
            self._with_adopt[key] = in_state and self._with_adopt.get(key, True)

    @property
    def adopts(self) -> bool:
        """Return whether a declaration has `adopt`, and its object is not in the state."""
        with self._lock:
            return not all(self._with_adopt.values())

    def note_compared(self, key: NaturalKey, taking: Taking) -> None:
        """Record the run's decision about an object that it may adopt."""
        with self._lock:
            self._compared[key] = taking

    def compared(self) -> Counter[Taking]:
        """Return the numbers of objects."""
        with self._lock:
            return Counter(self._compared.values())

    def has_nothing_to_adopt(self) -> bool:
        """Return whether declarations have `adopt`, and the state has the objects of all of them."""
        with self._lock:
            return bool(self._with_adopt) and all(self._with_adopt.values())


class Reported:
    """Warehouses that this run has a pre-flight report for. Safe to share between threads."""

    def __init__(self) -> None:
        """Create an empty registry."""
        self._lock = threading.Lock()
        self._keys: set[tuple[str, ...]] = set()

    def is_first(self, *key: str) -> bool:
        """Record a warehouse. Return whether it was not recorded before."""
        with self._lock:
            is_new = key not in self._keys
            self._keys.add(key)
            return is_new


@dataclass
class RunContext:
    """Data that outlives a single call. The engine starts a provider's process for one run of one stack."""

    clients: ClientPool = field(default_factory=ClientPool)
    own_objects: OwnObjects = field(default_factory=OwnObjects)
    to_activate: WarehousesToActivate = field(default_factory=WarehousesToActivate)
    claims: Claims = field(default_factory=Claims)
    """Claims of the resources that the engine checks."""
    declarations: Declarations = field(default_factory=Declarations)
    """Claims of the resources that a program declares, in the program's own process."""
    preflights: Reported = field(default_factory=Reported)
    explained_warehouses: set[str] = field(default_factory=set[str])
    """Ids of adopted warehouses whose tables explained all objects under their key prefixes, as the run began."""
    unshared_places: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Buckets and key prefixes under which no other catalog owned files, as this run checked."""
    clock: Clock = read_clock
    """Time with which ends of shares are compared."""
    record_id: str | None = None
    """Id of the tenant's record. The record's check, which is the first check of a run, sets it."""
    limit_lock: threading.Lock = field(default_factory=threading.Lock)
    """Held while a provider changes the record of enforced limits."""
    store_certificates: dict[str, str] = field(default_factory=dict[str, str])
    """Certificate authorities in PEM, by the endpoint of a store."""

    @property
    def lists(self) -> ListCache:
        """Lists that the clients of the run share."""
        return self.clients.lists

    def client(self, server: ServerRef, resolve: Callable[[str], str]) -> Client:
        """Return the client of a server whose version is supported.

        Args:
            server: The server and how to authenticate.
            resolve: Returns the secret behind a reference.

        Raises:
            UnsupportedServerError: The server is too old.
        """
        client = self.clients.get(server, resolve)
        client.server()
        return client

    def next(self) -> "RunContext":
        """Return the context of another run that keeps the connections."""
        self.lists.forget()
        self.lists.forget_run()
        return RunContext(clients=self.clients)


class _Process:
    """Holder of the context of this process."""

    run = RunContext()


def current() -> RunContext:
    """Return the context of the run that this process serves."""
    return _Process.run


def start(run: RunContext) -> RunContext:
    """Set the context of this process, and return it. Tests start each run with it."""
    _Process.run = run
    return run
