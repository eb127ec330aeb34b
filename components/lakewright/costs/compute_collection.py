"""Read the pods of computing units of many stacks from their clusters, and record their hours by the tenants' jobs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError

from lakewright.costs.pod_times import choose_warehouse, list_pod_days
from lakewright.drift.objects.kubernetes.cluster import ClusterUnreachableError
from lakewright.drift.session import ScanSession
from lakewright.errors import LakewrightError
from lakewright.fleet.states import StateReader, state_reader
from lakewright.limits.compute_enforcement import find_namespace
from lakewright.terminal.json_document import make_head
from lakewright.validation.documents import as_list
from lakewright.validation.moment import Clock, read_clock

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack
    from lakewright.fleet.spark_reports import SparkReport

UNIT_SELECTOR = "type=computing-unit"
"""Label of the pods of all units, as in Texera."""
COMMAND = "record-compute"
Record = Callable[[Sequence[str], Sequence["SelectedStack"]], Sequence["SparkReport"]]
"""Runs a command of `lakewright-spark` with the configurations of stacks, and returns its reports."""


@dataclass
class StackCompute:
    """The measured pods of a stack."""

    stack: SelectedStack
    pods: int = 0
    by_warehouse: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    """Measurements by the name of the warehouse in which they are recorded."""
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        days = {warehouse: len(rows) for warehouse, rows in self.by_warehouse.items()}
        return {"stack": self.stack.name, "pods": self.pods, "days": days, "problem": self.problem}


def record_compute(
    project: PulumiProject,
    selected: Sequence[SelectedStack],
    record: Record,
    *,
    reader: StateReader | None = None,
    clock: Clock = read_clock,
) -> list[StackCompute]:
    """Read the pods of computing units, and record the seconds of each pod and UTC day. States are never written.

    Args:
        project: The project of the stacks.
        selected: The stacks. Stacks without a namespace are left out, and stacks without computing units whose
            cluster is not known.
        record: Writes measurements with the identity of the tenants' jobs.
        reader: Reads the states; the reader of the project's backend if omitted.
        clock: Time until which running pods count.
    """
    states, session = reader or state_reader(project), ScanSession(project, clock=clock)
    try:
        measured = [*session.map(lambda stack: _measure_stack(session, states, stack), selected)]
    finally:
        session.close()
    computes = [compute for compute in measured if compute is not None]
    _write(computes, record)
    return computes


def _measure_stack(session: ScanSession, states: StateReader, stack: SelectedStack) -> StackCompute | None:
    compute = StackCompute(stack)
    try:
        namespace = find_namespace(states.read(stack.name))
        if namespace is None:
            return None
        spec = stack.require_spec()
        if namespace.is_rendered and not as_list(spec.get("computing_units")):
            return None
        cluster = namespace.connect(session)
        kind = cluster.collection("v1", "Pod")
        if kind is None:
            raise ClusterUnreachableError("the cluster serves no kind Pod")
        for pod in cluster.objects(kind, namespace=namespace.name, labels=UNIT_SELECTOR):
            rows = list(list_pod_days(pod, session.clock()))
            warehouse = choose_warehouse(spec, rows[0]["unit"]) if rows else None
            if warehouse is not None:
                compute.pods += 1
                compute.by_warehouse.setdefault(warehouse, []).extend(rows)
    except (LakewrightError, EngineError) as error:
        compute.problem = f"pods of computing units could not be read: {' '.join(str(error).split())}"
    return compute


def _write(computes: Iterable[StackCompute], record: Record) -> None:
    """Record all measurements with one command, and note its problems."""
    by_name = {compute.stack.name: compute for compute in computes if compute.by_warehouse}
    if not by_name:
        return
    with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
        file = Path(folder) / "pods.json"
        measurements = {name: compute.by_warehouse for name, compute in by_name.items()}
        file.write_text(json.dumps(measurements), encoding="utf-8")
        for report in record((COMMAND, str(file)), [compute.stack for compute in by_name.values()]):
            compute = by_name[report.stack.name]
            compute.problem = "; ".join(filter(None, (compute.problem, report.problem)))


def compute_exit_code(computes: Iterable[StackCompute]) -> int:
    """Return 1 if anything could not be read or recorded, else 0."""
    return int(any(compute.problem for compute in computes))


def to_json(computes: Sequence[StackCompute]) -> dict[str, Any]:
    """Return a run as JSON."""
    stacks = [compute.to_json() for compute in computes]
    return {**make_head(COMMAND), "exit": compute_exit_code(computes), "stacks": stacks}
