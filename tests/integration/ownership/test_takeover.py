"""A stack in another backend takes a tenant over: by a consent on the objects, and by a consent of its operator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from lakewright.names.tenant_parts import TenantPart
from lakewright_sandbox.runtime.state import Sandbox

from tests.integration.ownership.machine import RandomOwners
from tests.integration.ownership.observed import Observer
from tests.integration.ownership.stack_slots import StackCommands

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def stacks(sandbox: Sandbox, commands: StackCommands, observer: Observer, tmp_path: Path) -> RandomOwners:
    """Stack 0 has tenant a. Stack 2, in another backend, declares the tenant with `adopt`."""
    return make_takeover(sandbox, commands, observer, tmp_path, backend="s3")


@pytest.fixture
def aws_stacks(sandbox: Sandbox, commands: StackCommands, observer: Observer, tmp_path: Path) -> RandomOwners:
    """Stacks as in `stacks`, with a tenant on AWS."""
    return make_takeover(sandbox, commands, observer, tmp_path, backend="aws")


def make_takeover(
    sandbox: Sandbox, commands: StackCommands, observer: Observer, folder: Path, *, backend: str
) -> RandomOwners:
    class Takeover(RandomOwners): ...

    Takeover.sandbox, Takeover.server, Takeover.observer, Takeover.folder = sandbox, commands, observer, folder
    Takeover.codes, Takeover.backend = [], backend
    stacks = Takeover()
    stacks.deploy_first_tenant("purge")
    stacks.slots[2].write(stacks.spec("a") | {"adopt": True})
    return stacks


def up(stacks: RandomOwners, *options: str) -> int:
    return stacks.server.run(stacks.slots[2], "up", "--yes", "--engine", "embedded", *options)


@pytest.mark.parametrize(
    "by_option", [pytest.param(True, id="option", marks=pytest.mark.long), pytest.param(False, id="mark")]
)
def test_takeover_needs_a_consent(stacks: RandomOwners, *, by_option: bool) -> None:
    consents = [f"project={stacks.name('a')}", f"bucket={stacks.bucket('a')}"]
    before = [stacks.read(key) for key in stacks.objects]

    assert up(stacks) != 0
    assert f"--adopt {consents[0]} --adopt {consents[1]}`" in stacks.server.text()
    assert [stacks.read(key) for key in stacks.objects] == before
    if by_option:
        assert up(stacks, *(option for consent in consents for option in ("--adopt", consent))) == 0, (
            stacks.server.text()
        )
    else:
        assert stacks.server.run(stacks.slots[2], "adopt", "consent", *consents) == 0
        assert up(stacks) == 0, stacks.server.text()

    objects_after_takeover = [stacks.read(key) for key in stacks.objects]
    assert stacks.server.run(stacks.slots[0], "destroy", "--yes", "--engine", "embedded") != 0
    assert "lakewright stack forget" in stacks.server.text()
    assert [stacks.read(key) for key in stacks.objects] == objects_after_takeover
    assert stacks.server.run(stacks.slots[0], "stack", "forget", "--yes") == 0
    assert not stacks.slots[0].has_resources()
    assert stacks.server.run(stacks.slots[2], "destroy", "--yes", "--engine", "embedded") == 0, stacks.server.text()


def test_consent_names_a_missing_object(stacks: RandomOwners) -> None:
    assert stacks.server.run(stacks.slots[2], "adopt", "consent", "project=missing") != 0
    assert "expected a project `missing`" in stacks.server.text()
    assert stacks.server.run(stacks.slots[2], "adopt", "consent", "warehouse=first") != 0
    assert "expected project=ID instead of warehouse=first" in stacks.server.text()


@pytest.mark.parametrize("engine", ["embedded", pytest.param("pulumi", marks=pytest.mark.pulumi_cli)])
def test_preview_reports_a_takeover_as_adopt(stacks: RandomOwners, engine: str) -> None:
    consents = [f"--adopt=project={stacks.name('a')}", f"--adopt=bucket={stacks.bucket('a')}"]
    options = ["--engine", engine, *consents]
    adopted = {"StoreBucket", "Project", "Warehouse", "Namespace"}

    assert stacks.server.run(stacks.slots[2], "preview", *options) == 0, stacks.server.text()
    lines = stacks.server.text().splitlines()
    assert "    = 4 to adopt" in lines
    assert [line.strip() for line in lines if line in {f"  {part.value}" for part in TenantPart}] == [
        *("storage", "catalog", "other")
    ]
    assert {find_kind(line) for line in lines if line.endswith("  adopt")} == adopted
    assert not adopted & {find_kind(line) for line in lines if line.endswith("  create")}

    assert stacks.server.run(stacks.slots[2], "preview", *options, "--json") == 0
    document = read_document(stacks)
    assert {step["type"].rpartition(":")[2] for step in document["steps"] if step["op"] == "adopt"} == adopted
    parts = [TenantPart(step["part"]) for step in document["steps"]]
    assert parts == sorted(parts, key=[*TenantPart].index)
    assert document["changes"] == {"create": 6, "adopt": 4}

    assert stacks.server.run(stacks.slots[2], "up", "--yes", *options) == 0, stacks.server.text()
    assert "    = 4 adopted" in stacks.server.text().splitlines()
    assert stacks.server.run(stacks.slots[2], "preview", *options, "--json") == 0
    assert set(read_document(stacks)["changes"]) == {"same"}


def find_kind(line: str) -> str:
    """Return the kind of resource in a line of the display."""
    return line.split()[1].rpartition(":")[2]


def read_document(stacks: RandomOwners) -> dict[str, Any]:
    text = stacks.server.text()
    return json.JSONDecoder().raw_decode(text, text.index("\n{\n") + 1)[0]


def take_over(stacks: RandomOwners) -> list[object]:
    """Let stack 2, of the same name in another backend, adopt everything of stack 0. Return the objects."""
    consents = (f"project={stacks.name('a')}", f"bucket={stacks.bucket('a')}")
    assert up(stacks, *(word for consent in consents for word in ("--adopt", consent))) == 0, stacks.server.text()
    return [stacks.read(key) for key in stacks.objects]


def test_interrupted_destroy_deletes_nothing_of_a_namesake(stacks: RandomOwners) -> None:
    """The guard was deleted before the takeover, so it does not compare when the former owner continues."""
    former = stacks.slots[0]
    destroy = ("destroy", "--yes", "--engine", "embedded", "--parallel", "1")
    assert stacks.server.run(former, *destroy, kill_after=2) < 0
    objects_after_takeover = take_over(stacks)

    assert stacks.server.run(former, *destroy) != 0

    assert [stacks.read(key) for key in stacks.objects] == objects_after_takeover
    assert f"bucket `{stacks.bucket('a')}`" in stacks.server.text()
    assert "in another backend" in stacks.server.text()
    assert stacks.server.run(stacks.slots[2], *destroy) == 0, stacks.server.text()


def test_next_up_restores_access_after_interrupted_adoption(aws_stacks: RandomOwners) -> None:
    """The run is killed after the role has its new external ID, and before the warehouse has it."""
    stacks = aws_stacks
    (table,) = stacks.tables
    consents = [f"--adopt={stacks.format_consent(key)}" for key in stacks.objects if key in stacks.owners]
    assert stacks.observer.find_access_problem(table.tenant, table.warehouse) is None
    command = ("up", "--yes", "--engine", "embedded", "--parallel", "1", *consents)

    assert stacks.server.run(stacks.slots[2], *command, kill_after=7) < 0
    problem = stacks.observer.find_access_problem(table.tenant, table.warehouse)
    assert problem is not None
    assert "ShortTermCredentialError" in problem
    assert stacks.observer.has(table, stacks.bucket("a"))
    assert stacks.server.run(stacks.slots[2], *command) == 0, stacks.server.text()

    assert stacks.observer.find_access_problem(table.tenant, table.warehouse) is None


@pytest.mark.long
def test_targets_do_not_evade_the_comparison(stacks: RandomOwners) -> None:
    """A run with targets does not check the tenant's record."""
    former = stacks.slots[0]
    objects_after_takeover = take_over(stacks)
    resources = former.export()["deployment"]["resources"]
    urns = [resource["urn"] for resource in resources if ":Namespace" in resource["urn"]]
    targets = [option for urn in urns for option in ("--target", urn)]

    for command in (("destroy", "--yes", "--target-dependents"), ("up", "--yes", "--target-dependents")):
        assert stacks.server.run(former, *command, *targets, "--engine", "embedded") != 0

        assert "lakewright stack forget" in stacks.server.text()
        assert [stacks.read(key) for key in stacks.objects] == objects_after_takeover


def test_state_with_names_of_another_stack_deletes_nothing(stacks: RandomOwners) -> None:
    """`stack import --force` keeps the URNs of the exported state, which name its stack."""
    copied = stacks.slots[1]
    state = copied.folder / "exported.json"
    state.write_text(json.dumps(stacks.slots[0].export()))
    assert stacks.server.run(copied, "stack", "import", "--force", "--file", str(state)) == 0, stacks.server.text()
    copied.write(stacks.spec("a"))
    objects_after_takeover = [stacks.read(key) for key in stacks.objects]

    assert stacks.server.run(copied, "destroy", "--yes", "--engine", "embedded") != 0

    assert "belongs to stack `lakewright/one`; this is stack `lakewright/two`" in stacks.server.text()
    assert [stacks.read(key) for key in stacks.objects] == objects_after_takeover


def test_old_state_deletes_nothing_that_a_namesake_retained(stacks: RandomOwners) -> None:
    """A consent of retained data is for a later `up` of the name, not for a `destroy` of an old state."""
    former, other = stacks.slots[0], stacks.slots[2]
    destroy = ("destroy", "--yes", "--engine", "embedded")
    take_over(stacks)
    retained = stacks.spec("a") | {"adopt": True}
    retained["warehouses"] = [warehouse | {"deletion": "retain"} for warehouse in retained["warehouses"]]
    other.write(retained)
    assert up(stacks) == 0, stacks.server.text()
    assert stacks.server.run(other, *destroy) == 0, stacks.server.text()
    retained_objects = [stacks.read(key) for key in stacks.objects]

    assert stacks.server.run(former, *destroy) != 0

    assert "lakewright stack forget" in stacks.server.text()
    assert [stacks.read(key) for key in stacks.objects] == retained_objects
