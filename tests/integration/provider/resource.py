"""A resource of a stack, with its provider's hooks called as an engine calls them."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any

import pytest
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.errors import NotOwnedError
from lakewright.lakekeeper.provider.inactive_warehouses import WarehousesToActivate
from lakewright.lakekeeper.provider.run_context import OwnObjects
from lakewright.lakekeeper.warehouse.resource import WarehouseProvider
from lakewright.ownership.consent import ADOPT, Consent, ConsentKind, format_consents, read_consents
from pulumi.dynamic import ResourceProvider

Props = dict[str, Any]


CREATED_WAREHOUSE_IDS: set[str] = set()
"""Ids of warehouses that tests created: released servers do not list warehouses that a test leaves inactive."""


@dataclass
class Resource:
    """One resource in a stack: the state that the engine keeps, and the properties that a program declares."""

    provider: ResourceProvider
    id: str = ""
    inputs: Props = field(default_factory=dict)
    outs: Props = field(default_factory=dict)

    def preview(self, **props: Any) -> str:
        """Return the operation that `up` would do."""
        return self._step(props)[0]

    def up(self, **props: Any) -> str:
        """Create, update or replace the resource; return the operation."""
        operation, news = self._step(props)
        if operation == "create":
            self._create(news)
        elif operation == "replace":
            self.provider.delete(self.id, wire(self.outs))
            self._create(news)
        elif operation == "update":
            self.outs = self.provider.update(self.id, wire(self.outs), wire(news)).outs or {}
        self.inputs = news
        return operation

    def refresh(self) -> str:
        """Read the resource; return `same` if it matches the state, else `update` or `delete`."""
        run = run_context.current()
        run.lists.forget()  # An engine starts a new process for each operation.
        run.to_activate, run.own_objects = WarehousesToActivate(), OwnObjects()
        read_result = self.provider.read(self.id, wire(self.outs))
        if read_result.id is None:
            self.id, self.inputs, self.outs = "", {}, {}
            return "delete"
        drifted = self.provider.diff(self.id, wire(read_result.outs or {}), wire(self.inputs)).changes
        run.own_objects = OwnObjects()
        self.outs, self.inputs = read_result.outs or {}, read_result.inputs or {}
        return "update" if drifted else "same"

    def destroy(self) -> None:
        self.provider.delete(self.id, wire(self.outs))
        self.id, self.inputs, self.outs = "", {}, {}

    def failures(self, **props: Any) -> dict[str, str]:
        return {failure.property: failure.reason for failure in self.provider.check({}, wire(props)).failures}

    def list_refusals(self, **props: Any) -> list[str]:
        """Return why a preview refuses a declaration, given the state."""
        return [failure.reason for failure in self.provider.check(wire(self.inputs), wire(props)).failures]

    def refusal(self, **props: Any) -> str:
        """Return why an existing object is not adopted; the preview refuses it too."""
        assert "exists already" in self.failures(**props)["adopt"]
        with pytest.raises(NotOwnedError) as refused:
            self.provider.create(wire(props))
        return str(refused.value)

    def _step(self, props: Props) -> tuple[str, Props]:
        permit_adoption(props)
        checked = self.provider.check(wire(self.inputs), wire(props))
        assert not checked.failures, [(failure.property, failure.reason) for failure in checked.failures]
        if not self.id:
            return "create", checked.inputs
        diff = self.provider.diff(self.id, wire(self.outs), wire(checked.inputs))
        if diff.replaces:
            assert diff.delete_before_replace
            return "replace", checked.inputs
        return ("update" if diff.changes else "same"), checked.inputs

    def _create(self, news: Props) -> None:
        created = self.provider.create(wire(news))
        self.id, self.outs = created.id, created.outs or {}
        if isinstance(self.provider, WarehouseProvider):
            CREATED_WAREHOUSE_IDS.add(self.id)


def permit_adoption(props: Props) -> None:
    """Consent that a declaration with `adopt` takes over the contents of its project. A fixture removes the consent."""
    if props.get("adopt") and "project_id" in props:
        consents = read_consents() | {Consent(ConsentKind.PROJECT, props["project_id"])}
        os.environ[ADOPT] = format_consents(consents)


def wire(props: Props) -> Props:
    """Return properties as they arrive over the wire: floats only, no None, and the provider's key."""
    return {**json.loads(json.dumps(_drop_unset(props)), parse_int=float), "__provider": "gASV"}


def _drop_unset(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _drop_unset(item) for key, item in value.items() if item is not None}
    return value
