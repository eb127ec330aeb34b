"""The drift of a random stack, found by `lakewright drift` and by a refresh with a preview after it."""

from __future__ import annotations

from copy import deepcopy
from types import SimpleNamespace
from typing import Any, cast

from lakewright.drift.model import Difference, ScanProblem
from lakewright.drift.scanners.lakekeeper import LakekeeperScanner
from lakewright.drift.session import ScanSession, StackResource
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.inactive_warehouses import WarehousesToActivate
from lakewright_engine.model.resources import ResourceState

from tests.integration.provider.faults.random_stack import Declarations, Key, Managed, sort_by_creation
from tests.integration.provider.resource import wire

TYPES = {
    "project": "Project",
    "user": "User",
    "role": "Role",
    "warehouse": "Warehouse",
    "namespace": "Namespace",
    "table": "Table",
}
GONE, CHANGED = "gone", "changed"


def find_by_drift(resources: dict[Key, Managed]) -> dict[Key, str]:
    """Return the objects that the scanner of `lakewright drift` finds to differ."""
    run_context.current().lists.forget()
    states = [_state(key, resource) for key, resource in resources.items() if resource.id]
    session = ScanSession(cast(Any, SimpleNamespace(name="lake")), parallel=4)
    kinds: dict[Key, str] = {}
    for finding in LakekeeperScanner().scan(states, session):
        assert not isinstance(finding, ScanProblem), finding.message
        kinds[get_key(finding)] = finding.kind.value
    return kinds


def get_key(difference: Difference) -> Key:
    kind = difference.type.rpartition(":")[2].lower()
    return kind, difference.resource


def _state(key: Key, resource: Managed) -> StackResource:
    type_ = f"pulumi-python:dynamic/lakekeeper:{TYPES[key[0]]}"
    urn = f"urn:pulumi:s::lake::{type_}::{key[1]}"
    state = ResourceState(
        urn, type_, custom=True, id=resource.id, inputs=wire(resource.inputs), outputs=wire(resource.outs)
    )
    return StackResource("s", "s", "", state)


def find_by_preview(resources: dict[Key, Managed], applied: Declarations) -> dict[Key, str]:
    """Return the objects that a refresh removes from a copy of the state, or that the preview after it changes."""
    copies = {key: deepcopy(resource) for key, resource in resources.items() if resource.id}
    kinds = {key: GONE for key, resource in copies.items() if resource.refresh() == "delete"}
    run_context.current().to_activate = WarehousesToActivate()
    for key in sort_by_creation(copies.keys() - kinds.keys()):
        if _is_changed(copies[key], applied, key, copies):
            kinds[key] = CHANGED
    return kinds


def _is_changed(resource: Managed, applied: Declarations, key: Key, copies: dict[Key, Managed]) -> bool:
    declaration = applied[key]
    props = {**declaration.props, **{name: copies[other].id for name, other in declaration.made_in.items()}}
    news = resource.provider.check(wire(resource.inputs), wire({"server": resource.inputs["server"], **props}))
    if news.failures:
        return True  # a preview fails with this resource
    try:
        return resource.provider.diff(resource.id, wire(resource.outs), wire(news.inputs)).changes is True
    except LakekeeperError:
        return True
