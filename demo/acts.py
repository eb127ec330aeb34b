"""The acts of the demo, in order. Each shows one feature and fails the demo if it does not work."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse

from demo.stage import STACK, DemoError, Stage

DROPPED = "operator-port-state"
"""A namespace that remains empty, so a user could drop it by mistake."""
ON_STACK = ("--stack", STACK, "--engine", "embedded")
"""The engine that needs no installation, so that every run of the demo is the same."""
SOFT_DELETE_DAYS = 1
"""A setting that a user changes by hand, different from the spec."""

OF_PLANNING = {"same", "refresh", "read"}
"""Steps that change nothing."""


def sandbox(stage: Stage) -> None:
    """Remove the files of an earlier run and start a sandbox."""
    if stage.folder.exists() and (foreign_names := {path.name for path in stage.folder.iterdir()} - stage.leaves):
        raise DemoError(
            f"{stage.folder} holds {', '.join(sorted(foreign_names))}, not made here: give an empty folder to --dir."
        )
    if (stage.sandbox / "sandbox.json").exists():
        stage.output("lakewright", "sandbox", "down", "--purge", "--dir", str(stage.sandbox))
    shutil.rmtree(stage.folder, ignore_errors=True)
    stage.create_project()
    stage.run("lakewright", "sandbox", "up", "--dir", str(stage.sandbox))


def declare(stage: Stage) -> None:
    """Create the stack and apply it."""
    stage.run("lakewright", "stack", "init", "--stack", STACK)
    stage.run("lakewright", "up", *ON_STACK, "--yes")


def job(stage: Stage) -> None:
    """Run the job with the generated configuration and no key: the catalog vends credentials for each table."""
    stage.catalog.write_text(stage.output("lakewright", "config", "--stack", STACK, "--format", "json"))
    catalog_options = ("--config", str(stage.catalog), "--warehouse", warehouse(stage).name)
    stage.run("python", "-m", "demo.run_flights", *catalog_options, log=stage.spark_log)


def apply_again(stage: Stage) -> None:
    """Apply the stack again and expect no changes."""
    stage.run("lakewright", "up", *ON_STACK, "--yes", "--expect-no-changes")


def tamper(stage: Stage) -> None:
    """Make two changes by hand, outside the stack."""
    demo_warehouse = warehouse(stage)
    sandbox_state = json.loads((stage.sandbox / "sandbox.json").read_text())
    headers = {"x-project-id": str(catalog(stage).project_id)}
    with httpx.Client(base_url=sandbox_state["lakekeeper"]["endpoint"], headers=headers, timeout=30) as server:
        profile = {"type": "soft", "expiration-seconds": SOFT_DELETE_DAYS * 86400}
        server.post(
            f"/management/v1/warehouse/{demo_warehouse.id}/delete-profile", json={"delete-profile": profile}
        ).raise_for_status()
        server.delete(f"/catalog/v1/{demo_warehouse.id}/namespaces/{quote(DROPPED)}").raise_for_status()
    stage.say(f"A user sets soft delete of warehouse {demo_warehouse.name} to {SOFT_DELETE_DAYS} day,")
    stage.say(f"and drops namespace {DROPPED}.")


def find_drift(stage: Stage) -> None:
    """Check that a preview with refresh names exactly the two changes."""
    command = ("lakewright", "preview", *ON_STACK, "--refresh")
    machine = stage.start(*command, "--json")
    stage.run(*command)
    printed, _ = machine.communicate()
    changes = {(step["op"], step["type"], step["name"]) for step in select_changing_steps(json.loads(printed))}
    kinds = sorted((op, kind.rsplit(":", 1)[-1]) for op, kind, _ in changes)
    names = {name for op, _, name in changes if op == "create"}
    if kinds != [("create", "Namespace"), ("update", "Warehouse")] or not all(DROPPED in name for name in names):
        raise DemoError(f"expected an update of the warehouse and a creation of {DROPPED}, the preview has {changes}")
    stage.say_done("The preview names exactly the two changes.")


def heal(stage: Stage) -> None:
    """Apply the stack and expect no drift afterwards."""
    stage.run("lakewright", "up", *ON_STACK, "--yes", "--refresh")
    stage.run("lakewright", "preview", *ON_STACK, "--refresh", "--expect-no-changes")
    stage.say_done("The live objects are as declared.")


def select_changing_steps(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the changing steps in the output of `--json`, without the stack's own."""
    return [step for step in result["steps"] if step["op"] not in OF_PLANNING and step["type"] != "pulumi:pulumi:Stack"]


def catalog(stage: Stage) -> CatalogConfig:
    """Return the generated catalog configuration."""
    return CatalogConfig.load(Path(stage.catalog))


def warehouse(stage: Stage) -> CatalogWarehouse:
    """Return the tenant's first warehouse."""
    return catalog(stage).warehouses[0]
