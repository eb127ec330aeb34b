"""The spec of a tenant from the objects of its project. What specs cannot express is left out and listed. Pure.

Each part is checked with the functions that adopt it: a spec has only what `up` takes over without a change.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

from lakewright.discovery.declaration import grant_declaration, made_buckets, table_declaration, warehouse_declaration
from lakewright.discovery.declaration.errors import DiscoveryError, EmptyProjectError
from lakewright.discovery.declaration.omission import Omission
from lakewright.discovery.declaration.storages import (
    StorageHints,
    StorageNames,
    UndeclarableStorageError,
    placeholder_keys,
    storage_of,
)
from lakewright.discovery.declaration.table_declaration import UndeclarableTableError
from lakewright.discovery.declaration.warehouse_declaration import UndeclarableWarehouseError
from lakewright.discovery.listing.buckets import BucketFacts
from lakewright.discovery.listing.project_objects import FoundWarehouse, ProjectObjects
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.names.namespace_presets import PRESETS
from lakewright.names.table_name import QualifiedName
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.storage.backend import AwsDefaults

UNKNOWN_OWNER = "unknown"
"""Owner of a tenant until a person names one: no server knows it."""
_ORDER = ("storage", "warehouses", "tables", "grants", "role_members")
"""Sections whose parts can be left out. Parts of a section may belong to those of an earlier one."""
_LISTS = frozenset({"warehouses", "tables", "grants"})


@dataclass(frozen=True)
class TenantNames:
    """Values of a spec that no server has."""

    tenant: str
    owner: str
    environment: str


@dataclass(frozen=True)
class TenantDraft:
    """A spec that declares what exists, and what it leaves out."""

    spec: dict[str, Any]
    omissions: tuple[Omission, ...]
    open_references: tuple[str, ...] = ()
    """References to credentials that are placeholders until a person sets or replaces them."""
    comments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Comments by the path of a value: `storage.main`."""


def declare_tenant_of(
    found: ProjectObjects,
    names: TenantNames,
    hints: StorageHints,
    defaults: AwsDefaults,
    *,
    skipped_tables: Sequence[str] = (),
) -> TenantDraft:
    """Return the spec of a tenant.

    Args:
        found: Its project.
        names: What no server has.
        hints: What the server does not say about storages.
        defaults: The environment's settings for AWS.
        skipped_tables: Patterns of tables to leave out: WAREHOUSE.NAMESPACE.TABLE.

    Raises:
        DiscoveryError: No warehouse can be declared, or a name is invalid.
    """
    draft = _Draft(found, names, hints, defaults, skipped_tables)
    draft.add_warehouses()
    draft.add_tables()
    draft.add_access()
    draft.settle()
    return draft.finished()


class _Draft:
    def __init__(
        self,
        found: ProjectObjects,
        names: TenantNames,
        hints: StorageHints,
        defaults: AwsDefaults,
        skipped_tables: Sequence[str],
    ) -> None:
        self.found, self.names, self.hints, self.defaults = found, names, hints, defaults
        self.skipped_tables = skipped_tables
        self.omissions = [Omission("server", found.server.endpoint, reason) for reason in found.unread]
        self.by_name = {warehouse.name: warehouse for warehouse in found.warehouses}
        self.metadata: dict[str, Mapping[str, Any]] = {}
        self.references: list[str] = []
        self.comments: dict[str, str] = {}
        self.document: dict[str, Any] = {
            "version": 1,
            "environment": names.environment,
            "name": names.tenant,
            "owner": names.owner,
            "adopt": True,
            "project": self._project(),
            "labels": {},
            "storage": {},
            "warehouses": [],
            "tables": [],
            "grants": [],
            "role_members": {},
        }

    def _project(self) -> dict[str, str]:
        wanted = {"id": self.found.project_id, "name": self.found.name}
        return {key: value for key, value in wanted.items() if value != self.names.tenant}

    def omit(self, kind: str, name: str, reason: str) -> None:
        self.omissions.append(Omission(kind, name, reason))

    def add_warehouses(self) -> None:
        if unlisted := self.found.server.unlisted:
            self.omit("server", self.found.server.endpoint, f"warehouses may exist that are not listed: {unlisted}")
        storages = StorageNames()
        keyed: list[tuple[dict[str, Any], str]] = []
        for warehouse in self.found.warehouses:
            credential: Mapping[str, Any] = warehouse.response.get("storage-credential-type") or {}
            try:
                document = warehouse_declaration.warehouse_document(self.names.tenant, warehouse)
                storage = storage_of(
                    warehouse.response["storage-profile"], credential.get("credential-type"), self.hints
                )
            except (UndeclarableWarehouseError, UndeclarableStorageError) as reason:
                self.omit("warehouse", warehouse.name, str(reason))
                continue
            keyed.append((document, storages.add(storage)))
            self.omissions += warehouse_declaration.kept_settings(warehouse)
        named = storages.named()
        for key, name in named.items():
            self.document["storage"][name] = self._with_references(name, storages.storage(key))
        self._take_buckets()
        for document, key in keyed:
            own = {"storage": named[key]} if len(named) > 1 else {}
            self.document["warehouses"].append({"name": document["name"], **own, **document})

    def _take_buckets(self) -> None:
        """Let the stack make the buckets that a person names, if it would not change them."""
        for name, storage in self.document["storage"].items():
            bucket = str(storage["bucket"])
            facts = self.hints.buckets.get(bucket)
            if facts is None:
                continue
            if facts.problem:
                self.omit("bucket", bucket, f"it could not be read, so it stays outside of the stack: {facts.problem}")
            elif storage["backend"] != "s3":
                self.comments.setdefault(f"storage.{name}", f"The bucket has {facts}.")
                reason = "on AWS it stays outside of the stack, which would give its role an external ID of its own"
                self.omit("bucket", bucket, f"{reason}; it has {facts}")
                self._take_owner(facts)
            elif sum(other["bucket"] == bucket for other in self.document["storage"].values()) > 1:
                self.omit("bucket", bucket, "it stays outside of the stack: its warehouses reach it in different ways")
            else:
                self._take_bucket(name, bucket, facts)

    def _take_owner(self, facts: BucketFacts) -> None:
        """Use the owner in a bucket's tags, unless a person named one."""
        if self.names.owner == UNKNOWN_OWNER:
            self.document["owner"] = facts.tags.get(made_buckets.OWNER_TAG, UNKNOWN_OWNER)

    def _take_bucket(self, name: str, bucket: str, facts: BucketFacts) -> None:
        fields, problems = made_buckets.made_fields(bucket, facts)
        owner = facts.tags.get(made_buckets.OWNER_TAG, self.names.owner)
        labels = made_buckets.own_labels(facts, self.hints.environment_tags)
        own = {made_buckets.TENANT_TAG: self.names.tenant, made_buckets.OWNER_TAG: owner}
        problems += made_buckets.tag_problems(facts, {**labels, **self.hints.environment_tags, **own})
        if self.document["labels"] not in ({}, labels):
            problems.append("its tags are not those of the tenant's other buckets")
        if problems:
            self.omit("bucket", bucket, f"it stays outside of the stack: {'; '.join(problems)}")
            return
        self.document["storage"][name] |= fields
        self.document["owner"], self.document["labels"] = owner, labels

    def _with_references(self, name: str, storage: dict[str, Any]) -> dict[str, Any]:
        """Return a storage with placeholders for what cannot be read back."""
        made = dict(storage)
        if made["backend"] == "s3" and self.hints.keys is None:
            keys = placeholder_keys(name)
            made["credential"] = {"access_key_id": keys.access_key_id, "secret_access_key": keys.secret_access_key}
            self.references += made["credential"].values()
            self.comments[f"storage.{name}"] = "Credentials cannot be read back: set these references, or name others."
        if made["backend"] == "existing" and "external_id" not in made:
            made["external_id"] = f"config:external_id_{name.replace('-', '_')}"
            self.references.append(made["external_id"])
            facts = self.hints.roles.get(str(made["role_arn"]))
            why = f" ({facts.problem})" if facts and facts.problem else ""
            self.comments[f"storage.{name}"] = f"The role's external ID could not be read{why}: set this reference."
        return made

    def add_tables(self) -> None:
        for entry in self.document["warehouses"]:
            warehouse = self.by_name[entry["name"]]
            declared = {namespace.name for namespace in warehouse.namespaces}
            declared -= {n.name for n in warehouse.namespaces if warehouse_declaration.why_not_declarable(n)}
            preset = warehouse_declaration.preset_of(sorted(declared))
            for tabular in warehouse.tabulars:
                name = str(QualifiedName(warehouse.name, tabular.namespace, tabular.name))
                if reason := self._why_no_table(warehouse, tabular, name, declared, preset):
                    self.omit(tabular.kind, name, reason)
                    continue
                try:
                    document = table_declaration.table_document(warehouse.name, tabular, warehouse.metadata[tabular])
                except UndeclarableTableError as reason:
                    self.omit("table", name, str(reason))
                    continue
                self.document["tables"].append(document)
                self.metadata[name] = warehouse.metadata[tabular]

    def _why_no_table(
        self, warehouse: FoundWarehouse, tabular: Tabular, name: str, declared: Set[str], preset: str | None
    ) -> str:
        if tabular.kind != "table":
            return f"specs declare tables only; the {tabular.kind} stays as it is"
        if tabular.dropped:
            return "it is dropped and can still be restored; `lakewright undrop` does that"
        if ".".join(tabular.namespace) not in declared:
            return "its namespace cannot be declared"
        if preset and ".".join(tabular.namespace) in PRESETS[preset]:
            return f"runs of {preset} write and remove the tables of this namespace"
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.skipped_tables):
            return "left out as asked"
        return "" if tabular in warehouse.metadata else "its metadata cannot be read"

    def add_access(self) -> None:
        warehouses = {entry["name"] for entry in self.document["warehouses"]}
        namespaces = {
            f"{name}.{entry.name}"
            for name in warehouses
            for entry in self.by_name[name].namespaces
            if not warehouse_declaration.why_not_declarable(entry)
        }
        tables = {
            ".".join((name, *table.namespace, table.name))
            for name in warehouses
            for table in self.by_name[name].metadata
            if str(QualifiedName(name, table.namespace, table.name)) in self.metadata
        }
        access = grant_declaration.declared_access(self.found, warehouses, namespaces, tables)
        self.document["grants"], self.document["role_members"] = access.grants, access.role_members
        self.omissions += access.omissions

    def settle(self) -> None:
        """Remove parts until the whole spec is valid and changes nothing."""
        while True:
            self._require_warehouses()
            try:
                spec = parse_spec(self._written(), f"project {self.found.project_id}")
            except SpecError as error:
                self._remove_invalid(error)
                continue
            differing = [*self._differing(spec)]
            for kind, name, reasons in differing:
                self.omit(kind, name, f"adopting it would change: {'; '.join(reasons)}")
                self._remove(kind, name)
            if not differing:
                self._shorten_grants(spec)
                return

    def _require_warehouses(self) -> None:
        if not self.found.warehouses:
            raise EmptyProjectError(f"project {self.found.project_id} has no warehouse that this identity can see")
        if not self.document["warehouses"]:
            reasons = [
                f"{omission.name}: {omission.reason}" for omission in self.omissions if omission.kind == "warehouse"
            ]
            raise DiscoveryError(
                f"project {self.found.project_id} has no warehouse that a spec can declare"
                + "".join(f"\n  - {reason}" for reason in reasons)
            )

    def _written(self) -> dict[str, Any]:
        return {key: value for key, value in self.document.items() if value not in ([], {})}

    def _remove_invalid(self, error: SpecError) -> None:
        """Remove the parts that an error names, the last of a list first. Raises DiscoveryError for other parts."""
        parts: dict[tuple[str, int | str], list[str]] = {}
        for problem in error.problems:
            section, _, rest = problem.path.partition(".")
            place, _, _ = rest.partition(".")
            if section in _LISTS and place.isdigit():
                parts.setdefault((section, int(place)), []).append(str(problem))
            elif section in {"storage", "role_members"} and place:
                parts.setdefault((section, place), []).append(str(problem))
            else:
                raise DiscoveryError(f"the spec of project {self.found.project_id} is not valid: {problem}") from None
        # A removed part takes its tables, grants and members along, which changes the places of other sections.
        first = next(name for name in _ORDER if any(section == name for section, _ in parts))
        for (section, place), reasons in sorted(parts.items(), key=lambda part: str(part[0][1]).zfill(9), reverse=True):
            if section == first:
                self._remove_part(section, place, "; ".join(reasons))

    def _remove_part(self, section: str, place: int | str, reason: str) -> None:
        match section:
            case "storage":
                users = [entry["name"] for entry in self.document["warehouses"] if self._storage_of(entry) == place]
                for name in users:
                    self.omit("warehouse", name, reason)
                    self._remove("warehouse", name)
                self.document["storage"].pop(place, None)
            case "role_members":
                self.omit("member", str(place), reason)
                del self.document["role_members"][place]
            case "grants":
                grant = self.document["grants"].pop(cast(int, place))
                self.omit("grant", f"{grant['privilege']} of {grant['to']} on {grant['on']}", reason)
            case _:
                kind = "warehouse" if section == "warehouses" else "table"
                name = str(self.document[section][cast(int, place)]["name"])
                self.omit(kind, name, reason)
                self._remove(kind, name)

    def _storage_of(self, entry: Mapping[str, Any]) -> str:
        return str(entry.get("storage") or next(iter(self.document["storage"]), ""))

    def _remove(self, kind: str, name: str) -> None:
        """Remove a table with its grants, or a warehouse with all that is in it."""
        document = self.document
        document[f"{kind}s"] = [entry for entry in document[f"{kind}s"] if entry["name"] != name]
        self.metadata.pop(name, None)
        gone = {"kind": kind, "name": name}
        for grant in list(document["grants"]):
            if _is_on(grant["on"], kind, name):
                document["grants"].remove(grant)
                self.omit(
                    "grant",
                    f"{grant['privilege']} of {grant['to']} on {grant['on']}",
                    f"{gone['kind']} {name} is left out",
                )
        self._drop_idle_roles()
        if kind == "warehouse":
            for table in [entry["name"] for entry in document["tables"] if str(entry["name"]).split(".")[0] == name]:
                self.omit("table", table, f"warehouse {name} is left out")
                self._remove("table", table)
            used = {self._storage_of(entry) for entry in document["warehouses"]}
            document["storage"] = {key: value for key, value in document["storage"].items() if key in used}

    def _drop_idle_roles(self) -> None:
        """Remove the members of roles that no grant names any more."""
        granted = {str(grant["to"]).removeprefix("role:") for grant in self.document["grants"]}
        for role in [role for role in self.document["role_members"] if role not in granted]:
            self.omit("member", role, "no declared grant names its role, so its members stay as they are")
            del self.document["role_members"][role]

    def _differing(self, spec: TenantSpec) -> Iterator[tuple[str, str, list[str]]]:
        for warehouse in spec.warehouses:
            backend = spec.storage[spec.find_storage_name(warehouse)]
            found = self.by_name[warehouse.name]
            if reasons := warehouse_declaration.differences(
                warehouse, backend, found, self.defaults, spec.find_key_prefix(warehouse)
            ):
                yield "warehouse", warehouse.name, reasons
        for table in spec.tables:
            if reasons := table_declaration.differences(table, self.metadata[table.name]):
                yield "table", table.name, reasons

    def _shorten_grants(self, spec: TenantSpec) -> None:
        """Leave out the grants of the standard roles if the server has all of them, else turn these roles off."""
        if not self.document["role_members"]:
            return
        standard = grant_declaration.without_standard_grants(spec)
        if standard is None:
            self.document["standard_roles"] = False
            return
        grants = [grant for index, grant in enumerate(self.document["grants"]) if index not in standard]
        self.document["grants"] = grants

    def finished(self) -> TenantDraft:
        written = self._written()
        parse_spec(written, f"project {self.found.project_id}")
        unique = tuple(sorted(set(self.omissions)))
        return TenantDraft(written, unique, tuple(dict.fromkeys(self.references)), self.comments)


def _is_on(on: Mapping[str, Any], kind: str, name: str) -> bool:
    if kind == "warehouse":
        return on.get("warehouse") == name
    return on.get("table") is not None and f"{on.get('warehouse')}.{on['table']}" == name
