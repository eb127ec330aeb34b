"""Random changes of a stack: declarations, updates, drift and faults. After each `up` the server equals the stack."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import httpx
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.identity.user import UserProvider
from lakewright.lakekeeper.server.project import ProjectProvider
from lakewright.lakekeeper.table.resource import TableProvider
from lakewright.lakekeeper.warehouse.namespace import NamespaceProvider
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.provider.faults.fault_cases import access_key, storage
from tests.integration.provider.faults.fault_server import Operator
from tests.integration.provider.faults.random_stack import (
    Declarations,
    DeclaredObject,
    OperatedStack,
    expect_server_objects,
    read_server_objects,
)
from tests.integration.provider.faults.random_tables import AGES, REAL_KEY, real_storage
from tests.integration.provider.resource import Props

_tags = count(1)

PROJECTS = ("p0", "p1")
WAREHOUSES = ("w0", "w1", "w2")
NAMESPACES = ("a", "a.x", "b")
ON_S3 = "w0"
"""The warehouse with real storage, and the tables."""
NAMES = st.sampled_from(["north", "South", "ost"])
TEXTS = st.dictionaries(st.sampled_from(["owner", "team"]), st.sampled_from(["x", "y"]), max_size=2)
DELETION = st.sampled_from([{"type": "hard"}, {"type": "soft", "expiration_seconds": 60}])
FAULTS = st.sampled_from(
    [
        {"action": "drop"},
        {"action": "drop", "when": "after"},
        {"action": "expired-token"},
        *(
            {"action": "answer", "status": status, "when": when, "body": body}
            for status in (408, 429, 502, 503, 504)
            for when in ("before", "after")
            for body in ("json", "text")
        ),
    ]
)


class RandomStack(RuleBasedStateMachine):
    """One stack on a server that others use too. The test sets `operator` and `sandbox`."""

    operator: Operator
    sandbox: Sandbox

    def __init__(self) -> None:
        super().__init__()
        self.tag = f"life-{os.getpid()}-{next(_tags)}"
        self.http: httpx.Client = self.operator.fault_server.http
        self.http.post("/management/v1/bootstrap", json={"accept-terms-of-use": True})
        self.declarations: Declarations = {}
        self.stack = OperatedStack(self.operator.server)
        self.ages: dict[str, int] = {}
        self.settled = True
        """Whether no object was changed outside the stack since the last `up`."""
        self.guarded: set[str] = set()
        """Warehouses that the last `up` protected, or that held protected objects: they cannot be moved."""

    # Declarations of the program.

    @initialize(name=NAMES, delete_profile=DELETION)
    def begin(self, name: str, delete_profile: Props) -> None:
        more = {"delete_profile": delete_profile, "protected": False, "allowed_format_versions": [1, 2, 3]}
        self.declare_project("p0", name)
        self.declare_warehouse("w0", "p0", "one", "KEY", **more)
        self.declare_warehouse("w1", "p0", "one", None, **more)
        self.declare_namespace("w0", "a", {"owner": "x"}, protected=False)
        self.declare_table("a", "orders", {"owner": "x"}, 0)
        self.declare_role("p0", name, "")
        self.declare_user("u0", name)

    @rule(slot=st.sampled_from(PROJECTS), name=NAMES)
    def declare_project(self, slot: str, name: str) -> None:
        props = {"project_id": f"{self.tag}-{slot}", "name": name}
        self.declarations["project", slot] = DeclaredObject(ProjectProvider, props)

    @rule(
        slot=st.sampled_from(WAREHOUSES),
        project=st.sampled_from(PROJECTS),
        prefix=st.sampled_from(["one", "two"]),
        key=st.sampled_from(["KEY", "NEW_KEY", None]),
        delete_profile=DELETION,
        protected=st.booleans(),
        allowed_format_versions=st.sampled_from([[1, 2, 3], [2], [2, 3]]),
    )
    def declare_warehouse(self, slot: str, project: str, prefix: str, key: str | None, **more: Any) -> None:
        """Declare a warehouse with its format versions, which the server would choose otherwise."""
        if ("project", project) not in self.declarations:
            return
        before = self.declarations.get(("warehouse", slot))
        if before and (slot in self.guarded or not self.settled):
            project, prefix = before.needs[1], before.props["storage"]["key_prefix"].rpartition("/")[2]
        props = {
            "project_id": f"{self.tag}-{project}",
            "name": f"{slot}-{prefix}",
            "storage": self._storage(slot, f"{self.tag}/{slot}/{prefix}"),
            "credential": REAL_KEY if slot == ON_S3 else access_key(key) if key else None,
            "deletion": "purge",
            **more,
        }
        self.declarations["warehouse", slot] = DeclaredObject(WarehouseProvider, props, needs=("project", project))

    @rule(warehouse=st.sampled_from(WAREHOUSES), name=st.sampled_from(NAMESPACES), texts=TEXTS, protected=st.booleans())
    def declare_namespace(self, warehouse: str, name: str, texts: Props, *, protected: bool) -> None:
        parent = ("namespace", f"{warehouse}.{name.rpartition('.')[0]}") if "." in name else ("warehouse", warehouse)
        if parent not in self.declarations:
            return
        props = {"name": name, "properties": texts, "protected": protected, "deletion": "purge"}
        made_in = {"warehouse_id": ("warehouse", warehouse)}
        self.declarations["namespace", f"{warehouse}.{name}"] = DeclaredObject(
            NamespaceProvider, props, parent, made_in
        )

    @rule(
        namespace=st.sampled_from(NAMESPACES),
        name=st.sampled_from(["orders", "Parts"]),
        texts=TEXTS,
        years=st.integers(0, 2),
    )
    def declare_table(self, namespace: str, name: str, texts: Props, years: int) -> None:
        slot = f"{ON_S3}.{namespace}"
        if ("namespace", slot) in self.declarations:
            self.ages[slot] = min(self.ages.get(slot, 0) + years, len(AGES) - 1)
            props = {"namespace": namespace, "name": name, "properties": {"owner": "x", **texts}, "protected": False}
            props |= AGES[self.ages[slot]] | {"deletion": "purge"}
            made_in = {"warehouse_id": ("warehouse", ON_S3)}
            self.declarations["table", slot] = DeclaredObject(TableProvider, props, ("namespace", slot), made_in)

    @rule(project=st.sampled_from(PROJECTS), name=NAMES, description=st.sampled_from(["", "d", "e"]))
    def declare_role(self, project: str, name: str, description: str) -> None:
        """Declare a role with a description, which the server would keep otherwise."""
        if ("project", project) in self.declarations:
            props = {"project_id": f"{self.tag}-{project}", "name": name, "description": description}
            self.declarations["role", project] = DeclaredObject(RoleProvider, props, needs=("project", project))

    @rule(slot=st.sampled_from(["u0", "u1"]), name=NAMES)
    def declare_user(self, slot: str, name: str) -> None:
        props = {"user_id": f"oidc~{self.tag}-{slot}", "name": name, "user_type": "human"}
        self.declarations["user", slot] = DeclaredObject(UserProvider, props)

    @precondition(lambda self: self.settled and self.declarations)
    @rule(data=st.data())
    def leave_out(self, data: st.DataObject) -> None:
        """Remove a declaration that nothing needs or protects."""
        needed_keys = {item.needs for item in self.declarations.values()}
        protected = {key for key, item in self.declarations.items() if item.props.get("protected")}
        protected |= {key for key, resource in self.stack.resources().items() if resource.inputs.get("protected")}
        removable_keys = [key for key in self.declarations if key not in needed_keys and key not in protected]
        if removable_keys:
            del self.declarations[data.draw(st.sampled_from(sorted(removable_keys)))]

    # Changes outside the stack.

    @rule(data=st.data(), name=NAMES)
    def drift(self, data: st.DataObject, name: str) -> None:
        existing_keys = sorted(key for key in self.declarations if self.stack.has(key))
        if not existing_keys:
            return
        key = data.draw(st.sampled_from(existing_keys))
        drifts = self.stack.drifts(self.http, key, self.declarations[key], name)
        drift_name = data.draw(st.sampled_from(sorted(drifts)))
        drifts[drift_name]()
        self.settled = False

    # Operations.

    @rule()
    def up(self) -> None:
        self.operator.run(lambda: self.stack.up(self.declarations))
        self.settled = True
        self.guarded = {
            key[1].partition(".")[0]
            for key, declaration in self.declarations.items()
            if declaration.props.get("protected")
        }
        assert read_server_objects(self.http, self.tag) == expect_server_objects(self.declarations)

    @rule(fault=FAULTS, nth=st.integers(1, 25), times=st.sampled_from([1, 2, None]))
    def up_under_a_fault(self, fault: Props, nth: int, times: int | None) -> None:
        limited = fault | {"nth": nth, "count": times}
        failure, _ = self.operator.run_with_fault(lambda: self.stack.up(self.declarations), limited)
        assert failure is None or self.operator.server["endpoint"] in str(failure)
        self.up()

    @precondition(lambda self: self.settled and len(self.declarations) > 8)
    @rule()
    def destroy(self) -> None:
        for item in self.declarations.values():
            if item.props.get("protected"):
                item.props["protected"] = False
        self.up()
        self.declarations.clear()
        self.up()

    def _storage(self, slot: str, prefix: str) -> Props:
        return real_storage(self.sandbox, prefix) if slot == ON_S3 else storage(prefix)

    def teardown(self) -> None:
        self.operator.fault_server.install()
        self.up()
        self.destroy()
