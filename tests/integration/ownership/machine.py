"""Random stacks that claim each other's tenants: copies, renames, takeovers, edits, kills and destroys.

After each command, nothing that belongs to another stack was changed, and no data under `protect`, `retain`, `archive`
or `protected` is lost. The machine knows the owners from its own actions, not from marks.
"""

from __future__ import annotations

from copy import deepcopy
from itertools import count
from pathlib import Path
from pprint import pformat
from random import Random
from typing import Any, ClassVar
from uuid import uuid4

from lakewright.names.object_names import role_name
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.ownership.observed import DataTable, Observer
from tests.integration.ownership.stack_slots import Spec, StackCommands, make_slots

Object = tuple[str, str]
"""Kind of the object as consents name it, and the tenant. The kinds `role first` and `role second` are IAM roles."""
Identity = tuple[str, int]
"""A stack as marks know it: its name, and the lineage of its state, which a copy shares."""
TENANTS = ("a", "b")
SLOTS = range(3)
KILLS = [None, None, None, 2, 4, 7]
DELETIONS = ["protect", "retain", "purge"]
EDITS = ["deletion", "deletion", "protected", "warehouse", "namespace", "table", "adopt"]


class RandomOwners:
    """Three stacks and two tenants. The test sets the class's variables."""

    sandbox: Sandbox
    server: StackCommands
    observer: Observer
    folder: Path
    engine: str = "embedded"
    backend: str = "s3"
    """Storage backend of the tenants: `s3`, or `aws`, which also has IAM roles."""
    codes: ClassVar[list[tuple[str, int]]] = []
    """Command and exit code of all runs."""

    def __init__(self, random: Random | None = None) -> None:
        self.random = random or Random()
        self.life = uuid4().hex[:8]
        self.slots = make_slots(self.folder / self.life, self.sandbox)
        self.owners: dict[Object, set[Identity]] = {}
        """Stacks that may change an object. A stack becomes an owner by creating the object."""
        self.consents: dict[Object, set[str]] = {}
        """Names of the stacks that may adopt an object. The mark of the object has one of them."""
        self.lineages = count(1)
        self.lineage = [0 for _ in self.slots]
        """Lineage of each stack's state. A stack that begins without resources gets a new lineage."""
        self.keeps: dict[tuple[str, str], bool] = {}
        """Whether the owner's last deployment keeps the data of a warehouse, by tenant and warehouse."""
        self.archivable: set[tuple[str, str]] = set()
        """Warehouses that may be archived when they leave their stack, by tenant and warehouse."""
        self.archives: set[tuple[str, str]] = set()
        """Warehouses that may be archived."""
        self.inaccessible: set[tuple[str, str]] = set()
        """Warehouses whose role may require another external ID than they send, by tenant and warehouse."""
        self.tables: list[DataTable] = []
        self.names = count(1)

    def begin(self) -> None:
        """Deploy tenant a with data."""
        self.deploy_first_tenant(self.random.choice(self.deletions))

    def deploy_first_tenant(self, deletion: str) -> None:
        """Deploy tenant a with data and this deletion of its warehouse."""
        spec = self.spec("a")
        spec["warehouses"][0]["deletion"] = deletion
        self.slots[0].write(spec)
        self.run(0, ["up", "--yes"], set())
        assert self.owners.keys() >= {("project", "a"), ("bucket", "a")}, self.server.text()
        table = self.observer.write_table(self.name("a"), "first", "t0")
        assert table is not None
        self.tables.append(table)

    def act(self) -> None:
        """Do one thing that is possible now."""
        actions = [self.up, self.up, self.write_data, self.declare]
        if self.idle and self.live:
            actions += [self.copy, self.copy, self.rename, self.claim, self.claim, self.claim]
        if self.live:
            actions += [self.edit, self.edit, self.up_again, self.destroy, self.destroy, self.consent]
        if len(self.live) > 1:
            actions += [self.forget]
        self.random.choice(actions)()

    # Specs that users of the stacks write.

    def declare(self) -> None:
        """Write the spec of a tenant, which another stack may have, into the file of a stack without resources."""
        if self.idle:
            slot = self.random.choice(self.idle)
            adopt = {"adopt": True} if self.random.choice([True, False]) else {}
            self.slots[slot].write(self.spec(self.random.choice(TENANTS)) | adopt)

    def claim(self) -> None:
        """Declare a deployed tenant with `adopt` in a stack without resources, deploy it, and perhaps destroy it.

        Single actions make such a sequence too rarely.
        """
        tenants = sorted({tenant for kind, tenant in self.owners if kind == "project"})
        if not tenants:
            return
        slot, tenant = self.random.choice(self.idle), self.random.choice(tenants)
        spec = self.spec(tenant)
        spec["warehouses"][0]["deletion"] = self.random.choice(self.deletions)
        self.slots[slot].write(spec | {"adopt": True})
        self.deploy(slot)
        if self.slots[slot].has_resources() and self.random.choice([True, False]):
            self.run(slot, ["destroy", "--yes"], set(), self.random.choice(KILLS))

    def edit(self) -> None:
        slot = self.random.choice(self.live)
        spec = deepcopy(self.slots[slot].spec)
        assert spec is not None
        warehouse = self.random.choice(spec["warehouses"])
        match self.random.choice(EDITS):
            case "deletion":
                warehouse["deletion"] = self.random.choice(self.deletions)
            case "protected":
                warehouse["protected"] = not warehouse.get("protected", False)
            case "warehouse" if len(spec["warehouses"]) > 1:
                removed = spec["warehouses"].pop()
                spec["tables"] = [
                    table for table in spec.get("tables", []) if not table["name"].startswith(f"{removed['name']}.")
                ]
            case "warehouse":
                spec["warehouses"].append(self.warehouse("second", self.random.choice(self.deletions)))
            case "namespace":
                warehouse["namespaces"] = ["results"] if "more" in warehouse["namespaces"] else ["results", "more"]
            case "table" if spec.get("tables"):
                del spec["tables"]
            case "table":
                columns = [{"name": "id", "type": "long"}]
                spec["tables"] = [{"name": f"{warehouse['name']}.results.declared", "columns": columns}]
            case _:
                spec["adopt"] = not spec.get("adopt", False)
        self.slots[slot].write(spec)

    def copy(self) -> None:
        """Copy the spec of a stack, and perhaps its state, to a stack without resources."""
        source, copied = self.random.choice(self.live), self.random.choice(self.idle)
        spec = deepcopy(self.slots[source].spec)
        assert spec is not None
        for warehouse in spec["warehouses"]:
            warehouse["deletion"] = self.random.choice(self.deletions)
        self.slots[copied].write(spec)
        if self.random.choice([True, False]):
            self.slots[copied].copy_state(self.slots[source])
            self.lineage[copied] = self.lineage[source]

    def rename(self) -> None:
        """Move spec and state of a stack to another name. The objects keep the mark of the earlier name."""
        source, renamed = self.random.choice(self.live), self.random.choice(self.idle)
        self.slots[renamed].write(self.slots[source].spec)
        self.slots[renamed].copy_state(self.slots[source])
        self.lineage[renamed] = self.lineage[source]
        self.slots[source].empty()
        self.slots[source].write(None)

    def write_data(self) -> None:
        """Create a table in a deployed warehouse, as a job does."""
        if self.keeps:
            tenant, warehouse = self.random.choice(sorted(self.keeps))
            name = f"t{next(self.names)}"
            table = self.observer.write_table(
                self.name(tenant),
                warehouse,
                name,
                is_archived=(tenant, warehouse) in self.archives,
                is_inaccessible=(tenant, warehouse) in self.inaccessible,
            )
            self.tables += [table] if table else []

    # Commands that users of the stacks run.

    def up(self) -> None:
        """Deploy any stack with a spec."""
        slot = self.random.choice(SLOTS)
        if self.slots[slot].spec is not None:
            self.deploy(slot)

    def deploy(self, slot: int) -> None:
        """Deploy a stack, perhaps with the operator's consent to adopt all or one of its objects."""
        spec = self.slots[slot].spec
        assert spec is not None
        keys = {(kind, self.read_tenant(spec)) for kind in self.kinds}
        permitted = self.random.choice([set[Object](), keys, *({key} for key in sorted(keys))])
        options = [f"--adopt={self.format_consent(key)}" for key in sorted(permitted)]
        self.run(slot, ["up", "--yes", *options], permitted, self.random.choice(KILLS))

    def up_again(self) -> None:
        """Deploy a stack with resources, without a consent of the operator, as in most runs."""
        self.run(self.random.choice(self.live), ["up", "--yes"], set())

    def destroy(self) -> None:
        self.run(self.random.choice(self.live), ["destroy", "--yes"], set(), self.random.choice(KILLS))

    def consent(self) -> None:
        """Permit a stack, by marks on the objects, to adopt the objects of its spec."""
        slot = self.random.choice(SLOTS)
        if self.slots[slot].spec is not None:
            self.write_consents(slot)

    def write_consents(self, slot: int) -> None:
        """Permit a stack to adopt the existing objects of its tenant."""
        spec = self.slots[slot].spec
        assert spec is not None
        tenant = self.read_tenant(spec)
        keys = [(kind, tenant) for kind in self.kinds if self.read((kind, tenant)) is not None]
        if keys:
            consents = [self.format_consent(key) for key in keys]
            code = self.server.run(self.slots[slot], "adopt", "consent", *consents)
            assert code == 0, self.server.text()
            self.consents |= {key: {self.slots[slot].name} for key in keys}

    def forget(self) -> None:
        self.run(self.random.choice(self.live), ["stack", "forget", "--yes"], set())

    # Invariants.

    def run(self, slot: int, arguments: list[str], permitted: set[Object], kill_after: int | None = None) -> None:
        """Run a command, and compare everything that its stack must not change."""
        before = {key: self.read(key) for key in self.objects}
        if not self.slots[slot].has_resources():
            self.lineage[slot] = next(self.lineages)
        engine = [] if arguments[0] == "stack" else ["--engine", self.engine, "--parallel", "1" if kill_after else "16"]
        code = self.server.run(self.slots[slot], *arguments, *engine, kill_after=kill_after)
        self.codes.append((arguments[0], code))
        if code < 0 and self.engine == "pulumi":
            self.server.unlock(self.slots[slot])
        after = {key: self.read(key) for key in self.objects}
        spec, is_up = self.slots[slot].spec, arguments[0] == "up"
        for key in self.objects:
            owners = self.owners.get(key, set())
            # A consent is for a stack that declares the tenant. The mark keeps it while that stack, or a namesake in
            # another backend, deploys another tenant.
            declares = spec is not None and self.read_tenant(spec) == key[1]
            is_permitted = key in permitted or self.slots[slot].name in self.consents.get(key, set())
            consented = declares and is_permitted
            if owners and self.identity(slot) not in owners and not consented:
                assert after[key] == before[key], self.format_change(key, slot, before[key], after[key])
            # An adoption changes the mark. A copy of an old state may end an `up` without any call.
            took_over = consented and is_up and after[key] != before[key]
            self.note_owner(key, slot, after[key], took_over=took_over, is_whole=code == 0)
            if arguments[0] == "destroy" and key in self.owners and self.identity(slot) in owners:
                # A later stack of its name may adopt the objects that a stack keeps. The earlier consent remains if the
                # destroy was refused or interrupted, or if the object is perhaps marked for another owner.
                is_released = code == 0 and owners == {self.identity(slot)}
                earlier_consents = set[str]() if is_released else self.consents.get(key, set())
                self.consents[key] = earlier_consents | {self.slots[slot].name}
        self.check_data(slot)
        if spec is not None:
            changed_tenants = {key[1] for key in self.objects if before[key] != after[key]}
            self.note_archives(arguments[0], spec, changed_tenants, is_whole=code == 0)
            if is_up:
                self.note_deployment(slot, spec, is_whole=code == 0)
                roles = {key for key in self.objects if key[0].startswith("role ") and before[key] != after[key]}
                self.note_access(slot, spec, roles, is_whole=code == 0)

    def note_owner(self, key: Object, slot: int, live_object: Any, *, took_over: bool, is_whole: bool) -> None:
        owners = self.owners.get(key, set())
        if live_object is None:
            self.owners.pop(key, None)
            self.consents.pop(key, None)
        elif not owners:
            self.owners[key] = {self.identity(slot)}
        elif took_over:
            owner = self.identity(slot)
            self.owners[key] = {owner} if is_whole else owners | {owner}
            if is_whole and owner not in owners:
                # Only an adoption removes a consent: a stack that may be the owner already may not have used it.
                self.consents.pop(key, None)

    def check_data(self, slot: int) -> None:
        """Check that no data is lost which the last deployment of its owner keeps."""
        for table in [*self.tables]:
            tenant = table.tenant[-1]
            if not self.observer.has(table, self.bucket(tenant)):
                assert not self.keeps[tenant, table.warehouse], (
                    f"{self.describe(slot)} lost {table}. In the catalog: {self.observer.lists(table)}. Its metadata "
                    f"file: {self.observer.has_metadata(table, self.bucket(tenant))}.\n{self.server.text()}"
                )
                self.tables.remove(table)

    def note_deployment(self, slot: int, spec: Spec, *, is_whole: bool) -> None:
        """Note the data that an owner's deployment keeps. An interrupted deployment may have changed a part."""
        tenant = self.read_tenant(spec)
        if self.identity(slot) not in self.owners.get(("project", tenant), set()):
            return
        for warehouse in spec["warehouses"]:
            key = (tenant, warehouse["name"])
            keeps = warehouse["deletion"] != "purge" or bool(warehouse.get("protected"))
            self.keeps[key] = keeps if is_whole else keeps and self.keeps.get(key, True)
            if warehouse["deletion"] == "archive":
                self.archivable.add(key)
            elif is_whole:
                self.archivable.discard(key)

    def note_access(self, slot: int, spec: Spec, changed_roles: set[Object], *, is_whole: bool) -> None:
        """Note whether jobs have access to warehouses after an `up`. Check it after a whole `up` of the only owner.

        An `up` that adopts a role gives it a new external ID before it gives the warehouse that ID.
        """
        tenant = self.read_tenant(spec)
        for declared_warehouse in spec["warehouses"]:
            warehouse = declared_warehouse["name"]
            role = (f"role {warehouse}", tenant)
            if is_whole and self.owners.get(role) == {self.identity(slot)}:
                self.inaccessible.discard((tenant, warehouse))
                if (tenant, warehouse) not in self.archives:
                    problem = self.observer.find_access_problem(self.name(tenant), warehouse)
                    assert problem is None, f"{self.describe(slot)} left no access to {warehouse}: {problem}"
            elif role in changed_roles:
                self.inaccessible.add((tenant, warehouse))

    def note_archives(self, command: str, spec: Spec, changed_tenants: set[str], *, is_whole: bool) -> None:
        """Note the warehouses that a command may have archived, and the archives that it reactivated."""
        tenant = self.read_tenant(spec)
        declared_names = {warehouse["name"] for warehouse in spec["warehouses"]} if command == "up" else set[str]()
        if command in {"up", "destroy"} and tenant in changed_tenants:
            self.archives |= {key for key in self.archivable if key[0] == tenant and key[1] not in declared_names}
        if is_whole:
            self.archives -= {(tenant, name) for name in declared_names}

    # The model's names.

    @property
    def deletions(self) -> list[str]:
        """Effects of a deletion. Only warehouses on AWS can be archived, as the stack limits their roles."""
        return [*DELETIONS, *(["archive", "archive"] if self.backend == "aws" else [])]

    @property
    def live(self) -> list[int]:
        """Stacks with resources and a spec."""
        return [number for number, slot in enumerate(self.slots) if slot.spec is not None and slot.has_resources()]

    @property
    def idle(self) -> list[int]:
        """Stacks without resources."""
        return [number for number, slot in enumerate(self.slots) if not slot.has_resources()]

    @property
    def kinds(self) -> list[str]:
        return ["project", "bucket", *(["role first", "role second"] if self.backend == "aws" else [])]

    @property
    def objects(self) -> list[Object]:
        return [(kind, tenant) for tenant in TENANTS for kind in self.kinds]

    def read(self, key: Object) -> Any:
        kind, tenant = key
        match kind.split():
            case ["project"]:
                return self.observer.read_project(self.name(tenant))
            case ["bucket"]:
                return self.observer.read_bucket(self.bucket(tenant))
            case _:
                return self.observer.read_role(self.name_role(key))

    def format_consent(self, key: Object) -> str:
        """Return the consent to adopt an object, as `KIND=NAME`."""
        kind, tenant = key
        names = {"project": self.name(tenant), "bucket": self.bucket(tenant)}
        return f"{kind.split()[0]}={names.get(kind) or self.name_role(key)}"

    def name_role(self, key: Object) -> str:
        kind, tenant = key
        return role_name(self.name(tenant), kind.split()[1])

    def name(self, tenant: str) -> str:
        return f"t{self.life}{tenant}"

    def bucket(self, tenant: str) -> str:
        return f"t{self.life}{tenant}-lake"

    def identity(self, slot: int) -> Identity:
        return self.slots[slot].name, self.lineage[slot]

    def read_tenant(self, spec: Spec) -> str:
        return spec["name"][-1]

    def describe(self, slot: int) -> str:
        return f"`{' '.join(self.server.arguments)}` of stack {slot} in {self.slots[slot].folder.name}"

    def format_change(self, key: Object, slot: int, before: Any, after: Any) -> str:
        """Return the message of a change that a stack must not make, with what the machine knows about the object."""
        knowledge = f"Stack: {self.identity(slot)}. Owners: {self.owners[key]}. Consents: {self.consents.get(key)}."
        values = f"Before:\n{pformat(before)}\nAfter:\n{pformat(after)}"
        return f"{self.describe(slot)} changed {key}.\n{knowledge}\n{values}\nOutput:\n{self.server.text()}"

    def spec(self, tenant: str) -> Spec:
        keys = {"access_key_id": "env:STORE_ID", "secret_access_key": "env:STORE_SECRET"}
        aws = {"backend": "aws", "bucket": self.bucket(tenant)}
        store = {
            "backend": "s3",
            "bucket": self.bucket(tenant),
            "endpoint": self.sandbox.aws.endpoint,
            "region": self.sandbox.aws.region,
            "credential": keys,
            "sts": False,
            "create": True,
        }
        return {
            "version": 1,
            "environment": "sandbox",
            "name": self.name(tenant),
            "owner": "tests",
            "storage": {"main": aws if self.backend == "aws" else store},
            "warehouses": [self.warehouse("first", "purge")],
        }

    def warehouse(self, name: str, deletion: str) -> Spec:
        delegation = {"delegation": "remote-signing"} if self.backend == "s3" else {}
        return {"name": name, "namespaces": ["results"], "deletion": deletion, **delegation}
