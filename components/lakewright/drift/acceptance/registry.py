"""Edit the spec for differences by type of resource. A new type is a function and a line here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakewright.drift.acceptance.access_edits import accept_grant, accept_role_members
from lakewright.drift.acceptance.edits import SpecEdit, WrittenSpec
from lakewright.drift.acceptance.field_edits import edit_field
from lakewright.drift.acceptance.table_edits import accept_table
from lakewright.drift.acceptance.view_edits import accept_view
from lakewright.drift.acceptance.warehouse_edits import accept_namespace, accept_task_queue, accept_warehouse
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.field_map.marks import NotExpressibleError
from lakewright.field_map.read_back import find_field
from lakewright.spec.tenant import ProjectSpec

Acceptor = Callable[[Difference, WrittenSpec], list[SpecEdit]]
"""Returns the edits that declare the found values. Raises NotExpressibleError."""

_LAKEKEEPER = "pulumi-python:dynamic/lakekeeper:"
_REASONS = {
    DifferenceKind.CHECK: "a failed check is not a property: fix the data, or change `checks`",
    DifferenceKind.UNREACHABLE: "the object could not be checked",
    DifferenceKind.UNMANAGED: "declare the object in the spec with `adopt`; `lakewright spec from-server` writes it",
}


def _accept_project(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    if difference.kind is not DifferenceKind.CHANGED or find_field(ProjectSpec, difference.property) is None:
        raise NotExpressibleError("the spec declares the name of an existing project only")
    return edit_field(ProjectSpec, ("project",), difference, spec, title="a project")


ACCEPTORS: Mapping[str, Acceptor] = {
    f"{_LAKEKEEPER}Project": _accept_project,
    f"{_LAKEKEEPER}Warehouse": accept_warehouse,
    f"{_LAKEKEEPER}Namespace": accept_namespace,
    f"{_LAKEKEEPER}Table": accept_table,
    f"{_LAKEKEEPER}View": accept_view,
    f"{_LAKEKEEPER}TaskQueueConfig": accept_task_queue,
    f"{_LAKEKEEPER}Grant": accept_grant,
    f"{_LAKEKEEPER}RoleMembers": accept_role_members,
}
"""Functions by type of resource."""


def find_edits(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits of a spec that declare the found values.

    Raises:
        NotExpressibleError: The spec cannot express it.
    """
    if reason := _REASONS.get(difference.kind):
        raise NotExpressibleError(reason)
    if difference.found == "[secret]":
        raise NotExpressibleError("a secret cannot be read back from the server")
    acceptor = ACCEPTORS.get(difference.type)
    if acceptor is None:
        kind = difference.type.rpartition(":")[2]
        raise NotExpressibleError(f"a {kind} follows from several fields of the spec; change them manually, or heal it")
    return acceptor(difference, spec)
