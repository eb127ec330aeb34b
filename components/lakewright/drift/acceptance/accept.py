"""Apply differences to the text of a stack file, one after the other. The result is a valid spec, or unchanged."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lakewright_engine.project.yaml_edit import YamlEditError, delete_entry, edit_entry

from lakewright.drift.acceptance.edits import REMOVED, SpecEdit, WrittenSpec
from lakewright.drift.acceptance.registry import find_edits
from lakewright.drift.model import Difference
from lakewright.field_map.marks import NotExpressibleError
from lakewright.project_files.shared_values import FOLDER, MergedSpec, find_place, merge_defaults
from lakewright.project_files.stack_files import spec_key
from lakewright.spec import SpecError, parse_spec
from lakewright.validation.documents import as_mapping
from lakewright.validation.yaml_text import load_yaml


@dataclass
class Acceptance:
    """A new text of a stack file, and the differences that it accepts."""

    source: str
    """Name of the file."""
    before: str
    text: str
    accepted: list[Difference] = field(default_factory=list[Difference])
    refused: list[tuple[Difference, str]] = field(default_factory=list[tuple[Difference, str]])
    """Differences that the spec cannot express, and why."""

    def diff(self) -> str:
        """Return the change of the file as a unified diff."""
        old, new = self.before.splitlines(keepends=True), self.text.splitlines(keepends=True)
        return "".join(difflib.unified_diff(old, new, self.source, f"{self.source} (accepted)", n=2))


def accept(differences: Iterable[Difference], text: str, source: str, defaults: Path = Path(FOLDER)) -> Acceptance:
    """Return a stack file that declares the found values. Ignored differences are left out.

    Args:
        differences: The differences of one stack.
        text: The stack file.
        source: Its name, for messages.
        defaults: Folder of the files that the spec may extend. They are not changed.
    """
    result = Acceptance(source, text, text)
    for difference in differences:
        if difference.ignored is not None:
            continue
        try:
            result.text = _accept_difference(result.text, difference, source, defaults)
        except (NotExpressibleError, YamlEditError) as error:
            result.refused.append((difference, str(error)))
        except SpecError as error:
            reasons = "; ".join(str(problem) for problem in error.problems)
            result.refused.append((difference, f"the spec would be invalid: {reasons}"))
        else:
            result.accepted.append(difference)
    return result


def _accept_difference(text: str, difference: Difference, source: str, defaults: Path) -> str:
    key = spec_key(as_mapping(load_yaml(text)))
    merged = _read_spec(text, key, defaults)
    for edit in find_edits(difference, WrittenSpec(merged.document)):
        _refuse_inherited(merged, edit)
        text = _apply_edit(text, key, edit)
    parse_spec(_read_spec(text, key, defaults).document, source)
    return text


def _read_spec(text: str, key: str, defaults: Path) -> MergedSpec:
    spec = as_mapping(as_mapping(as_mapping(load_yaml(text)).get("config")).get(key))
    return merge_defaults(spec, defaults, str(defaults))


def _refuse_inherited(merged: MergedSpec, edit: SpecEdit) -> None:
    """Raise NotExpressibleError for an edit of a value that other specs may extend, too."""
    path = ".".join(map(str, edit.path))
    if location := find_place(merged, path):
        raise NotExpressibleError(
            f"{location} sets `{path}` for all specs that extend it: change it there, or set it in this spec first"
        )


def _apply_edit(text: str, key: str, edit: SpecEdit) -> str:
    path = ("config", key, *edit.path)
    return delete_entry(text, path) if edit.value is REMOVED else edit_entry(text, path, edit.value)
