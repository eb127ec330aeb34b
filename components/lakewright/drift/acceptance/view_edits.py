"""Accept changes of views."""

from __future__ import annotations

from lakewright.drift.acceptance.edits import REMOVED, Path, SpecEdit, WrittenSpec
from lakewright.drift.acceptance.field_edits import edit_field
from lakewright.drift.acceptance.table_edits import find_index
from lakewright.drift.model import Difference, DifferenceKind
from lakewright.field_map.marks import NotExpressibleError
from lakewright.spec.view import ViewSpec


def accept_view(difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    """Return the edits for a property of a view, or for a deleted view."""
    path: Path = ("views", find_index("views", difference.resource, spec))
    if difference.kind is DifferenceKind.GONE:
        return [SpecEdit(path, REMOVED)]
    if not difference.property:
        raise NotExpressibleError(f"not in one property: {difference.found}")
    if refusal := ViewSpec.refused_properties.get(difference.property):
        raise NotExpressibleError(refusal)
    return edit_field(ViewSpec, path, difference, spec, title="a view")
