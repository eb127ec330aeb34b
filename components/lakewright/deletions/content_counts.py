"""Count the contents that are deleted with warehouses, namespaces, tables and buckets under `deletion: purge`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError
from lakewright_engine.plans.deleted_contents import DeletedContents
from lakewright_engine.plans.state_version import content_hash
from pydantic import ValidationError

from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.data_checks.snapshots import find_current_snapshot, read_total
from lakewright.deletions.bucket_contents import OpenBucket, count_bucket, deletes_contents
from lakewright.deletions.recorded_objects import ProviderPool, RecordedObject, read_recorded
from lakewright.lakekeeper.api.catalog import contents, namespaces, tables
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.buckets import own_bucket
from lakewright.lakekeeper.buckets.own_bucket import OwnBucket
from lakewright.lakekeeper.preflight import surroundings, warehouse_contents
from lakewright.lakekeeper.provider.errors import CannotCountError
from lakewright.lakekeeper.table import removal as table_removal
from lakewright.lakekeeper.table.args import TableArgs
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.warehouse.model import WarehouseArgs
from lakewright.lakekeeper.warehouse.namespace import NamespaceArgs, NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.names.types import is_prefix_within

if TYPE_CHECKING:
    from lakewright_engine.model.resources import ResourceState
    from lakewright_engine.project.project import PulumiProject

    from lakewright.lakekeeper.api.catalog.tables import Metadata

MOST_VERSIONS = 50_000
"""Most objects and versions that are listed under a key prefix: 50 calls."""
MOST_TABLES = 5_000
"""Most tables that are loaded for their sizes."""
CONCURRENT_LOADS = 16

PurgedArgs = WarehouseArgs | NamespaceArgs | TableArgs


@dataclass(frozen=True)
class ContentCounter:
    """Counts the contents of a stack's resources."""

    project: PulumiProject
    stack: str
    open_bucket: OpenBucket
    """Returns a bucket of AWS with how the stack reaches it."""

    def count(self, states: Sequence[ResourceState]) -> list[DeletedContents]:
        """Return the contents of the resources whose deletion deletes data.

        A namespace or table in a warehouse or namespace that is deleted too is counted there.
        """
        purged: list[_PurgedObject] = []
        unreadable: list[DeletedContents] = []
        with closing(ProviderPool(self.project, self.stack)) as providers:
            for state in states:
                try:
                    purged_object = _read_purged(state, providers)
                except ValidationError as error:
                    reason = f"the state of an earlier version cannot be read: {error.error_count()} errors"
                    unreadable.append(DeletedContents(state.urn, state.id, state.type, unknown=reason))
                    continue
                purged += [purged_object] if purged_object is not None else []
            outer = [candidate for candidate in purged if not any(_contains(other, candidate) for other in purged)]
            buckets = [count_bucket(state, self.open_bucket) for state in states if deletes_contents(state)]
            return [*(counted.count() for counted in outer), *buckets, *unreadable]


@dataclass
class _Tally:
    """Contents that were counted so far."""

    counts: dict[str, int] = field(default_factory=dict[str, int])
    bytes: int = 0
    is_partial: bool = False
    identities: list[Any] = field(default_factory=list[Any])

    def add(self, tabulars: Iterable[Tabular]) -> None:
        """Count tables and views. The size of the files of soft-deleted tables and views is unknown."""
        for tabular in sorted(tabulars):
            noun = tabular.kind.replace("-", " ")
            noun = f"soft-deleted {noun}" if tabular.dropped else noun
            self.counts[noun] = self.counts.get(noun, 0) + 1
            self.identities.append([noun, str(tabular), tabular.tabular_id])

    def add_table_size(self, metadata: Metadata) -> None:
        """Add the bytes of a table's current snapshot."""
        snapshot = find_current_snapshot(metadata)
        size = read_total(snapshot, "total-files-size") if snapshot else 0
        self.bytes += size or 0
        self.is_partial |= size is None
        self.identities.append([metadata["table-uuid"], metadata.get("current-snapshot-id"), metadata.get("refs")])


@dataclass(frozen=True)
class _PurgedObject:
    """An object whose deletion deletes data."""

    recorded_object: RecordedObject
    provider: WarehouseProvider | NamespaceProvider | TableProvider
    state: PurgedArgs

    def count(self) -> DeletedContents:
        """Return its contents, or why they cannot be counted."""
        recorded_object = self.recorded_object
        try:
            tally = self._tally()
        except (LakekeeperError, UnresolvedCredentialError, EngineError) as error:
            reason = f"{type(error).__name__}: {error}"
            return DeletedContents(recorded_object.urn, recorded_object.id, recorded_object.type, unknown=reason)
        return DeletedContents(
            recorded_object.urn,
            recorded_object.id,
            recorded_object.type,
            counts=tally.counts,
            bytes=tally.bytes,
            is_partial=tally.is_partial,
            fingerprint=content_hash(tally.identities),
        )

    def _tally(self) -> _Tally:
        tally, state = _Tally(), self.state
        client = self.provider.connect_as_recorded(state.server)
        if isinstance(state, WarehouseArgs):
            tabulars = warehouse_contents.list_tabulars(client, self.recorded_object.id, state.name)
            tally.add(tabulars)
            prefix = getattr(state.storage, "key_prefix", None)
            if state.own_bucket is not None and prefix:
                bucket = state.own_bucket.with_resolver(self.provider.secret)
                _tally_prefix(tally, client, self.recorded_object.id, bucket, prefix)
            else:
                _tally_table_sizes(tally, client, self.recorded_object.id, tabulars)
        elif isinstance(state, NamespaceArgs):
            if namespaces.get(client, state.warehouse_id, state.path) is None:
                _refuse_inactive(client, state.warehouse_id)
                return tally
            tabulars = contents.read_namespace(client, state.warehouse_id, state.path).tabulars
            tally.add(tabulars)
            _tally_table_sizes(tally, client, state.warehouse_id, tabulars)
        else:
            live_table = table_removal.find_removed(client, state, self.recorded_object.id)
            if isinstance(live_table, Tabular):
                tally.add([live_table])
                tally.is_partial = True
            elif live_table is not None:
                tally.counts["table"] = 1
                tally.add_table_size(live_table.metadata)
        return tally


def _read_purged(state: ResourceState, providers: ProviderPool) -> _PurgedObject | None:
    """Return the object with its provider; None if its deletion deletes no data."""
    recorded_object = read_recorded(state)
    provider = providers.get(recorded_object) if recorded_object is not None else None
    if recorded_object is None or not isinstance(provider, (WarehouseProvider, NamespaceProvider, TableProvider)):
        return None
    # The credential has secrets of the state, which are hidden here and are not needed.
    outputs = {name: value for name, value in recorded_object.outputs.items() if name != "credential"}
    args = provider.args.from_state(outputs)
    return _PurgedObject(recorded_object, provider, args) if args.deletion == "purge" else None


def _contains(outer: _PurgedObject, inner: _PurgedObject) -> bool:
    """Return whether the deletion of one object deletes another object."""
    if isinstance(inner.state, WarehouseArgs) or isinstance(outer.state, TableArgs):
        return False
    if isinstance(outer.state, WarehouseArgs):
        return inner.state.warehouse_id == outer.recorded_object.id
    if inner is outer or inner.state.warehouse_id != outer.state.warehouse_id:
        return False
    path = [level.casefold() for level in outer.state.path]
    levels = [level.casefold() for level in inner.state.path]
    is_longer = isinstance(inner.state, TableArgs) or len(levels) > len(path)
    return is_longer and levels[: len(path)] == path


def _refuse_inactive(client: Client, warehouse_id: str) -> None:
    """Raise CannotCountError if a warehouse is inactive, and therefore hides its namespaces."""
    if client.is_active(warehouse_id) is False:
        raise CannotCountError(
            f"warehouse {warehouse_id} at {client.endpoint} is inactive. Set `active: true` and run `up` first."
        )


def _tally_prefix(tally: _Tally, client: Client, warehouse_id: str, bucket: OwnBucket, prefix: str) -> None:
    """Add the bytes under the key prefix of a warehouse, which is emptied except for the data of other warehouses."""
    neighbours = surroundings.look_around(client).find_overlapping(bucket, prefix, [warehouse_id])
    other_prefixes = [neighbour.place.prefix for neighbour in neighbours]
    if any(is_prefix_within(prefix, other) for other in other_prefixes):
        return
    versions: list[tuple[str, str, int]] = []
    with own_bucket.raise_uncounted(bucket):
        entries = own_bucket.entries_outside(
            own_bucket.open_client(bucket), bucket.bucket, f"{prefix}/", [f"{other}/" for other in other_prefixes]
        )
        for entry in entries:
            if entry.is_deleted_probe or entry.is_marker:
                continue
            if len(versions) == MOST_VERSIONS:
                tally.is_partial = True
                break
            versions.append((entry.key, entry.version, entry.size))
    tally.bytes += sum(size for _, _, size in versions)
    tally.identities.append(sorted(versions))


def _tally_table_sizes(tally: _Tally, client: Client, warehouse_id: str, tabulars: Sequence[Tabular]) -> None:
    """Add the bytes of tables by their snapshots, where the files cannot be listed."""
    live_tables = sorted(tabular for tabular in tabulars if tabular.kind == "table" and not tabular.dropped)
    loaded = live_tables[:MOST_TABLES]

    def load(table: Tabular) -> Metadata | None:
        return tables.load(client, warehouse_id, table.namespace, table.name)

    with ThreadPoolExecutor(CONCURRENT_LOADS) as pool:
        documents = list(pool.map(load, loaded))
    for table, metadata in zip(loaded, documents, strict=True):
        if metadata is None:
            raise CannotCountError(
                f"table `{table}` of warehouse {warehouse_id} at {client.endpoint} cannot be loaded. Let the stack's"
                " identity read it, or drop it."
            )
        tally.add_table_size(metadata)
    tally.is_partial |= len(loaded) < len(live_tables) or any(
        tabular.dropped and tabular.kind == "table" for tabular in tabulars
    )
