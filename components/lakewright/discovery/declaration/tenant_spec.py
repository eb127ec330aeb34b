"""Derive the spec of a tenant from the objects of its project. Settings that specs cannot express are listed. Pure.

Each part is checked with the functions that adopt it: a spec has only objects that `up` takes over without a change.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, cast

from lakewright_spark.policies.builtin import is_own
from lakewright_spark.table_identifier import TableIdentifier

from lakewright.discovery.declaration import grant_declaration, table_declaration, warehouse_declaration
from lakewright.discovery.declaration.omission import DiscoveryError, EmptyProjectError, Omission
from lakewright.discovery.declaration.storages import (
    OWNER_TAG,
    TENANT_TAG,
    StorageHints,
    StorageNames,
    declare_storage,
    derive_fields,
    derive_labels,
    find_tag_problems,
)
from lakewright.discovery.declaration.view_declaration import declare_view, find_view_differences
from lakewright.discovery.listing.buckets import BucketFacts
from lakewright.discovery.listing.project_objects import FoundWarehouse, ProjectObjects
from lakewright.field_map.marks import NotExpressibleError
from lakewright.field_map.read_back import read_fields
from lakewright.lakekeeper.api.catalog.tabulars import Tabular
from lakewright.names.table_name import PRESETS, QualifiedName, match_preset
from lakewright.spec import SpecError, TenantSpec, parse_spec
from lakewright.spec.tenant import ProjectSpec
from lakewright.storage.backend import AwsDefaults
from lakewright.storage.registry import BACKENDS

UNKNOWN_OWNER = "unknown"
"""Owner of a tenant until a person names an owner: no server knows it."""
_ORDER = ("storage", "warehouses", "tables", "views", "grants", "role_members")
"""Sections whose parts can be left out. Parts of a section may belong to parts of an earlier section."""
_LISTS = frozenset({"warehouses", "tables", "views", "grants"})


@dataclass(frozen=True)
class TenantNames:
    """Values of a spec that no server has."""

    tenant: str
    owner: str
    environment: str


@dataclass(frozen=True)
class TenantDraft:
    """A spec of existing objects, and the objects that it leaves out."""

    spec: dict[str, Any]
    omissions: tuple[Omission, ...]
    open_references: tuple[str, ...] = ()
    """References to credentials that are placeholders until a person sets or replaces them."""
    comments: Mapping[str, str] = field(default_factory=dict[str, str])
    """Comments by the path of a value: `storage.main`."""


def draft_tenant_spec(
    project: ProjectObjects,
    names: TenantNames,
    hints: StorageHints,
    defaults: AwsDefaults,
    *,
    skipped_tables: Sequence[str] = (),
) -> TenantDraft:
    """Return the spec of a tenant.

    Args:
        project: Its project.
        names: Values that no server has.
        hints: Facts about storages that the server does not return.
        defaults: The environment's settings for AWS.
        skipped_tables: Patterns of tables to leave out: WAREHOUSE.NAMESPACE.TABLE.

    Raises:
        DiscoveryError: No warehouse can be declared, or a name is invalid.
    """
    draft = _Draft(project, names, hints, defaults, skipped_tables)
    draft.add_warehouses()
    draft.add_tables_and_views()
    draft.add_access()
    draft.settle()
    return draft.finish()


class _Draft:
    def __init__(
        self,
        project: ProjectObjects,
        names: TenantNames,
        hints: StorageHints,
        defaults: AwsDefaults,
        skipped_tables: Sequence[str],
    ) -> None:
        self.project, self.names, self.hints, self.defaults = project, names, hints, defaults
        self.skipped_tables = skipped_tables
        self.omissions = [Omission("server", project.server.endpoint, reason) for reason in project.unread]
        self.warehouses_by_name = {warehouse.name: warehouse for warehouse in project.warehouses}
        self.metadata: dict[str, Mapping[str, Any]] = {}
        self.references: list[str] = []
        self.comments: dict[str, str] = {}
        self.document: dict[str, Any] = {
            "version": 1,
            "environment": names.environment,
            "name": names.tenant,
            "owner": names.owner,
            "adopt": True,
            "project": self._declare_project(),
            "labels": {},
            "storage": {},
            "warehouses": [],
            "tables": [],
            "views": [],
            "grants": [],
            "role_members": {},
        }

    def _declare_project(self) -> dict[str, str]:
        live = {"project_id": self.project.project_id, "name": self.project.name}
        return {key: value for key, value in read_fields(ProjectSpec, live).items() if value != self.names.tenant}

    def omit(self, kind: str, name: str, reason: str) -> None:
        self.omissions.append(Omission(kind, name, reason))

    def add_warehouses(self) -> None:
        if unlisted := self.project.server.unlisted:
            self.omit("server", self.project.server.endpoint, f"warehouses may exist that are not listed: {unlisted}")
        storages = StorageNames()
        keyed: list[tuple[dict[str, Any], str]] = []
        for warehouse in self.project.warehouses:
            credential: Mapping[str, Any] = warehouse.response.get("storage-credential-type") or {}
            try:
                document = warehouse_declaration.declare_warehouse(self.names.tenant, warehouse)
                storage = declare_storage(
                    warehouse.response["storage-profile"], credential.get("credential-type"), self.hints
                )
            except NotExpressibleError as reason:
                self.omit("warehouse", warehouse.name, str(reason))
                continue
            keyed.append((document, storages.add(storage)))
            self.omissions += warehouse_declaration.list_undeclarable_settings(warehouse)
        names_by_key = storages.assign_names()
        for key, name in names_by_key.items():
            self.document["storage"][name] = self._add_references(name, storages.storage(key))
        self._take_buckets()
        for document, key in keyed:
            storage_field = {"storage": names_by_key[key]} if len(names_by_key) > 1 else {}
            self.document["warehouses"].append({"name": document["name"], **storage_field, **document})

    def _take_buckets(self) -> None:
        """Let the stack make the buckets that a person names, if it would not change them."""
        for name, storage in self.document["storage"].items():
            bucket = str(storage["bucket"])
            facts = self.hints.buckets.get(bucket)
            if facts is None:
                continue
            if facts.problem:
                self.omit("bucket", bucket, f"it could not be read and remains outside of the stack: {facts.problem}")
            elif not BACKENDS[storage["backend"]].can_make_bucket:
                self.comments.setdefault(f"storage.{name}", f"The bucket has {facts}.")
                reason = "on AWS it remains outside of the stack, which would give its role an external ID of its own"
                self.omit("bucket", bucket, f"{reason}; it has {facts}")
                self._take_owner(facts)
            elif sum(other["bucket"] == bucket for other in self.document["storage"].values()) > 1:
                self.omit("bucket", bucket, "it remains outside of the stack: its warehouses reach it differently")
            else:
                self._take_bucket(name, bucket, facts)

    def _take_owner(self, facts: BucketFacts) -> None:
        """Use the owner in a bucket's tags, unless a person named an owner."""
        if self.names.owner == UNKNOWN_OWNER:
            self.document["owner"] = facts.tags.get(OWNER_TAG, UNKNOWN_OWNER)

    def _take_bucket(self, name: str, bucket: str, facts: BucketFacts) -> None:
        fields, problems = derive_fields(bucket, facts)
        owner = facts.tags.get(OWNER_TAG, self.names.owner)
        labels = derive_labels(facts, self.hints.environment_tags)
        toolkit_tags = {TENANT_TAG: self.names.tenant, OWNER_TAG: owner}
        problems += find_tag_problems(facts, {**labels, **self.hints.environment_tags, **toolkit_tags})
        if self.document["labels"] not in ({}, labels):
            problems.append("its tags differ from the tags of the tenant's other buckets")
        if problems:
            self.omit("bucket", bucket, f"it remains outside of the stack: {'; '.join(problems)}")
            return
        self.document["storage"][name] |= fields
        self.document["owner"], self.document["labels"] = owner, labels

    def _add_references(self, name: str, storage: dict[str, Any]) -> dict[str, Any]:
        """Return a storage with placeholders for values that cannot be read back."""
        backend = BACKENDS[storage["backend"]]
        placeholders = backend.fill_references(name, storage, self.hints.keys, self.hints.roles)
        if placeholders is None:
            return storage
        self.references += placeholders.references
        self.comments[f"storage.{name}"] = placeholders.comment
        return {**storage, **placeholders.fields}

    def add_tables_and_views(self) -> None:
        for entry in self.document["warehouses"]:
            warehouse = self.warehouses_by_name[entry["name"]]
            declarable = {namespace.name for namespace in warehouse.namespaces}
            declarable -= {n.name for n in warehouse.namespaces if warehouse_declaration.find_namespace_problem(n)}
            preset = match_preset(sorted(declarable))
            for tabular in warehouse.tabulars:
                name = str(QualifiedName(warehouse.name, tabular.namespace, tabular.name))
                if reason := self._find_table_problem(warehouse, tabular, name, declarable, preset):
                    self.omit(tabular.kind, name, reason)
                    continue
                declare = declare_view if tabular.kind == "view" else table_declaration.declare_table
                try:
                    document = declare(warehouse.name, tabular, warehouse.metadata[tabular])
                except NotExpressibleError as reason:
                    self.omit(tabular.kind, name, str(reason))
                    continue
                self.document[f"{tabular.kind}s"].append(document)
                self.metadata[name] = warehouse.metadata[tabular]

    def _find_table_problem(
        self, warehouse: FoundWarehouse, tabular: Tabular, name: str, declarable: Set[str], preset: str | None
    ) -> str:
        if tabular.kind == "generic-table":
            return "specs declare Iceberg tables and views only; the generic table remains as it is"
        if tabular.dropped:
            return "it is dropped and can still be restored; `lakewright undrop` does that"
        if ".".join(tabular.namespace) not in declarable:
            return "its namespace cannot be declared"
        if reason := _find_writer(warehouse, tabular, preset):
            return reason
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in self.skipped_tables):
            return "left out as asked"
        return "" if tabular in warehouse.metadata else "its metadata cannot be read"

    def add_access(self) -> None:
        warehouses = {entry["name"] for entry in self.document["warehouses"]}
        namespaces = {
            f"{name}.{entry.name}"
            for name in warehouses
            for entry in self.warehouses_by_name[name].namespaces
            if not warehouse_declaration.find_namespace_problem(entry)
        }
        tables = {
            ".".join((name, *table.namespace, table.name))
            for name in warehouses
            for table in self.warehouses_by_name[name].metadata
            if table.kind == "table" and str(QualifiedName(name, table.namespace, table.name)) in self.metadata
        }
        access = grant_declaration.declare_access(self.project, warehouses, namespaces, tables)
        self.document["grants"], self.document["role_members"] = access.grants, access.role_members
        self.omissions += access.omissions

    def settle(self) -> None:
        """Remove parts until the whole spec is valid and changes nothing."""
        while True:
            self._require_warehouses()
            try:
                spec = parse_spec(self._drop_empty_sections(), f"project {self.project.project_id}")
            except SpecError as error:
                self._remove_invalid(error)
                continue
            differing = [*self._find_differences(spec)]
            for kind, name, reasons in differing:
                self.omit(kind, name, f"adopting it would change: {'; '.join(reasons)}")
                self._remove(kind, name)
            if not differing:
                self._shorten_grants(spec)
                return

    def _require_warehouses(self) -> None:
        if not self.project.warehouses:
            raise EmptyProjectError(f"project {self.project.project_id} has no warehouse that this identity can see")
        if not self.document["warehouses"]:
            reasons = [
                f"{omission.name}: {omission.reason}" for omission in self.omissions if omission.kind == "warehouse"
            ]
            raise DiscoveryError(
                f"project {self.project.project_id} has no warehouse that a spec can declare"
                + "".join(f"\n  - {reason}" for reason in reasons)
            )

    def _drop_empty_sections(self) -> dict[str, Any]:
        return {key: value for key, value in self.document.items() if value not in ([], {})}

    def _remove_invalid(self, error: SpecError) -> None:
        """Remove the parts that an error names, the last of a list first. Raises DiscoveryError for other parts."""
        parts: dict[tuple[str, int | str], list[str]] = {}
        for problem in error.problems:
            section, _, subpath = problem.path.partition(".")
            part_key, _, _ = subpath.partition(".")
            if section in _LISTS and part_key.isdigit():
                parts.setdefault((section, int(part_key)), []).append(str(problem))
            elif section in {"storage", "role_members"} and part_key:
                parts.setdefault((section, part_key), []).append(str(problem))
            else:
                raise DiscoveryError(f"the spec of project {self.project.project_id} is not valid: {problem}") from None
        # A removed part takes its tables, grants and members along, which changes the places of other sections.
        first = next(name for name in _ORDER if any(section == name for section, _ in parts))
        for (section, part_key), reasons in sorted(
            parts.items(), key=lambda part: str(part[0][1]).zfill(9), reverse=True
        ):
            if section == first:
                self._remove_part(section, part_key, "; ".join(reasons))

    def _remove_part(self, section: str, part_key: int | str, reason: str) -> None:
        match section:
            case "storage":
                users = [
                    entry["name"] for entry in self.document["warehouses"] if self._find_storage_name(entry) == part_key
                ]
                for name in users:
                    self.omit("warehouse", name, reason)
                    self._remove("warehouse", name)
                self.document["storage"].pop(part_key, None)
            case "role_members":
                self.omit("member", str(part_key), reason)
                del self.document["role_members"][part_key]
            case "grants":
                grant = self.document["grants"].pop(cast(int, part_key))
                self.omit("grant", f"{grant['privilege']} of {grant['to']} on {grant['on']}", reason)
            case _:
                kind = section.removesuffix("s")
                name = str(self.document[section][cast(int, part_key)]["name"])
                self.omit(kind, name, reason)
                self._remove(kind, name)

    def _find_storage_name(self, entry: Mapping[str, Any]) -> str:
        return str(entry.get("storage") or next(iter(self.document["storage"]), ""))

    def _remove(self, kind: str, name: str) -> None:
        """Remove a table with its grants, a view, or a warehouse with its contents."""
        document = self.document
        document[f"{kind}s"] = [entry for entry in document[f"{kind}s"] if entry["name"] != name]
        self.metadata.pop(name, None)
        for grant in list(document["grants"]):
            if _is_on(grant["on"], kind, name):
                document["grants"].remove(grant)
                self.omit(
                    "grant",
                    f"{grant['privilege']} of {grant['to']} on {grant['on']}",
                    f"{kind} {name} is left out",
                )
        self._drop_idle_roles()
        if kind == "warehouse":
            for inner_kind in ("table", "view"):
                inside = [entry["name"] for entry in document[f"{inner_kind}s"]]
                for inner_name in [inner_name for inner_name in inside if inner_name.split(".")[0] == name]:
                    self.omit(inner_kind, inner_name, f"warehouse {name} is left out")
                    self._remove(inner_kind, inner_name)
            used = {self._find_storage_name(entry) for entry in document["warehouses"]}
            document["storage"] = {key: value for key, value in document["storage"].items() if key in used}

    def _drop_idle_roles(self) -> None:
        """Remove the members of roles that no grant names."""
        granted = {str(grant["to"]).removeprefix("role:") for grant in self.document["grants"]}
        for role in [role for role in self.document["role_members"] if role not in granted]:
            self.omit("member", role, "no declared grant names its role, so its members remain as they are")
            del self.document["role_members"][role]

    def _find_differences(self, spec: TenantSpec) -> Iterator[tuple[str, str, list[str]]]:
        for warehouse in spec.warehouses:
            backend = spec.storage[spec.find_storage_name(warehouse)]
            live_warehouse = self.warehouses_by_name[warehouse.name]
            if reasons := warehouse_declaration.find_differences(
                warehouse, backend, live_warehouse, self.defaults, spec.find_key_prefix(warehouse)
            ):
                yield "warehouse", warehouse.name, reasons
        for table in spec.tables:
            if reasons := table_declaration.find_differences(table, self.metadata[table.name]):
                yield "table", table.name, reasons
        for view in spec.views:
            if reasons := find_view_differences(view, self.metadata[view.name]):
                yield "view", view.name, reasons

    def _shorten_grants(self, spec: TenantSpec) -> None:
        """Leave out the grants of the standard roles if the server has all of them, else turn these roles off."""
        if not self.document["role_members"]:
            return
        standard = grant_declaration.find_standard_grants(spec)
        if standard is None:
            self.document["standard_roles"] = False
            return
        grants = [grant for index, grant in enumerate(self.document["grants"]) if index not in standard]
        self.document["grants"] = grants

    def finish(self) -> TenantDraft:
        document = self._drop_empty_sections()
        parse_spec(document, f"project {self.project.project_id}")
        unique = tuple(sorted(set(self.omissions)))
        return TenantDraft(document, unique, tuple(dict.fromkeys(self.references)), self.comments)


def _find_writer(warehouse: FoundWarehouse, tabular: Tabular, preset: str | None) -> str:
    """Return which programs write a table of their own; empty for other tables."""
    if preset and ".".join(tabular.namespace) in PRESETS[preset]:
        return f"runs of {preset} write and remove the tables of this namespace"
    if is_own(TableIdentifier(warehouse.name, tabular.namespace, tabular.name)):
        return "jobs of Lakewright make this table, and change its columns"
    return ""


def _is_on(on: Mapping[str, Any], kind: str, name: str) -> bool:
    if kind == "warehouse":
        return on.get("warehouse") == name
    return on.get("table") is not None and f"{on.get('warehouse')}.{on['table']}" == name
