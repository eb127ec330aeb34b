"""Accept changes of properties that a field of a section sets, as the field's mark declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic import BaseModel

from lakewright.drift.acceptance.edits import REMOVED, Path, SpecEdit, WrittenSpec, edit_list
from lakewright.drift.model import Difference
from lakewright.field_map.marks import NotExpressibleError, find_reason
from lakewright.field_map.read_back import MarkedField, find_field, replace_inner_value
from lakewright.validation.documents import as_list, as_mapping


def edit_field(
    model: type[BaseModel], path: Path, difference: Difference, spec: WrittenSpec, *, title: str
) -> list[SpecEdit]:
    """Return the edits that declare the found value of a property.

    Args:
        model: The section.
        path: Path of the section in the spec.
        difference: The difference of the property.
        spec: The spec as written.
        title: Kind of the object, for messages: `a warehouse`.

    Raises:
        NotExpressibleError: No field sets the property, or the field cannot express the value.
    """
    field = find_field(model, difference.property)
    if field is None:
        raise NotExpressibleError(f"the spec has no field for `{difference.property}` of {title}")
    if refusal := field.mark.refusal or find_reason(model, field.name):
        raise NotExpressibleError(refusal)
    return _edit_value(field, (*path, field.name), difference, spec)


def _edit_value(field: MarkedField, path: Path, difference: Difference, spec: WrittenSpec) -> list[SpecEdit]:
    written = spec.get_value(*path)
    live_value = difference.found
    if field.inner_path:
        # The difference has a part of the property: the other parts are as declared.
        live_value = replace_inner_value(field.mark.to_args(written), field.inner_path, live_value)
    value = field.mark.from_live(live_value)
    if value in (None, {}, []):
        if written is None and live_value in (None, {}, []):
            raise NotExpressibleError(f"the spec cannot declare that `{difference.property}` is not set")
        return [SpecEdit(path, REMOVED)] if written is not None else []
    if isinstance(value, list):
        return edit_list(spec, path, as_list(cast(object, value)))
    if isinstance(value, dict):
        return edit_mapping(spec, path, as_mapping(cast(object, value)))
    return [SpecEdit(path, value)]


def edit_mapping(spec: WrittenSpec, path: Path, target: Mapping[str, Any]) -> list[SpecEdit]:
    """Return edits that change a mapping to the target; single entries are changed where there are any."""
    written = as_mapping(spec.get_value(*path))
    if not written:
        return [SpecEdit(path, dict(target))]
    edits = [SpecEdit((*path, key), REMOVED) for key in written if key not in target]
    return edits + [SpecEdit((*path, key), value) for key, value in target.items() if written.get(key) != value]
