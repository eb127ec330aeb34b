"""Choose stacks of a project by name patterns and by labels of their specs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright_engine.state.names import suggest_name

from lakewright.errors import LakewrightError
from lakewright.project_files.stack_files import read_unchecked_spec
from lakewright.terminal.escaping import escape_line
from lakewright.validation.documents import as_mapping, as_text

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.validation.problems import SpecError


class FleetError(LakewrightError):
    """An operation on many stacks cannot start."""


class SelectionError(FleetError):
    """The filters select no stack, or a filter is malformed."""

    exit_code = 2


class ResumeError(FleetError):
    """No interrupted or failed run can be resumed."""

    exit_code = 2


_PREFIX, _SUFFIX = "Pulumi.", ".yaml"


@dataclass(frozen=True)
class Selection:
    """Filters of stacks. A stack must match one of the patterns and all labels; without filters all stacks match."""

    patterns: tuple[str, ...] = ()
    """Shell patterns of stack names: `*`, `?` and `[...]`."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    """Values of labels by name, each a shell pattern."""

    @property
    def is_filter(self) -> bool:
        """Whether there is a filter."""
        return bool(self.patterns or self.labels)

    def matches(self, stack: SelectedStack) -> bool:
        """Return whether a stack matches."""
        if self.patterns and not any(fnmatchcase(stack.name, pattern) for pattern in self.patterns):
            return False
        labels = stack.labels
        return all(name in labels and fnmatchcase(labels[name], value) for name, value in self.labels.items())

    def __str__(self) -> str:
        """Return the filters as they are written on the command line."""
        filters = [f"--stack '{pattern}'" for pattern in self.patterns]
        return " ".join(filters + [f"--label {name}={value}" for name, value in self.labels.items()]) or "all stacks"


@dataclass(frozen=True)
class SelectedStack:
    """A stack, and the facts about the tenant in its file."""

    name: str
    spec: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The spec in the stack's file, unchecked; empty if there is none."""
    error: SpecError | None = None
    """Why the stack's file, or a file that its spec extends, cannot be read. Then `spec` is empty or incomplete."""

    def require_spec(self) -> Mapping[str, Any]:
        """Return the spec, unchecked; empty if there is none.

        Raises:
            SpecError: The stack's file, or a file that its spec extends, cannot be read.
        """
        if self.error is not None:
            raise self.error
        return self.spec

    @property
    def tenant(self) -> str:
        """The name of the tenant; empty if the stack has no spec."""
        return as_text(self.spec.get("name")) or ""

    @property
    def owner(self) -> str:
        """The owner of the tenant; empty if the spec names none."""
        return as_text(self.spec.get("owner")) or ""

    @property
    def environment(self) -> str:
        """The name of the environment; empty if the stack has no spec."""
        return as_text(self.spec.get("environment")) or ""

    @property
    def labels(self) -> dict[str, str]:
        """The labels of the spec. Values of other types are converted to text."""
        return {str(name): str(value) for name, value in as_mapping(self.spec.get("labels")).items()}


def parse_labels(texts: Iterable[str]) -> dict[str, str]:
    """Return the labels of `NAME=VALUE` texts; a NAME alone accepts every value.

    Raises:
        SelectionError: A text has no name, or a name has two values.
    """
    labels: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name:
            raise SelectionError(f"--label {text!r}: expected NAME=VALUE, or NAME for every value")
        if name in labels:
            raise SelectionError(f"--label {name}: given twice; a label has one value, so no stack would match")
        labels[name] = value if separator else "*"
    return labels


def stack_files(project: PulumiProject) -> dict[str, Path]:
    """Return the stack files of a project by the name of their stack, in the order of the names."""
    files = project.stack_config_dir.glob(f"{_PREFIX}*{_SUFFIX}")
    return {file.name[len(_PREFIX) : -len(_SUFFIX)]: file for file in sorted(files)}


def select(project: PulumiProject, selection: Selection, names: Iterable[str] = ()) -> list[SelectedStack]:
    """Return the stacks that match, sorted by name. Warn of stacks whose labels cannot be read.

    Args:
        project: The project.
        selection: The filters. Labels match no stack whose labels cannot be read.
        names: Stacks of the backend. A stack without a file has an empty spec.

    Raises:
        SelectionError: No stack matches, or a pattern matches none.
    """
    files = stack_files(project)
    stacks = [_read_stack(name, files.get(name)) for name in sorted({*files, *names})]
    for pattern in selection.patterns:
        if not any(fnmatchcase(stack.name, pattern) for stack in stacks):
            raise SelectionError(
                f"--stack {pattern!r} matches none of the {len(stacks)} stacks in {project.stack_config_dir}"
                f"{suggest_name(pattern, (stack.name for stack in stacks))}`lakewright fleet list` lists them"
            )
    matching = [stack for stack in stacks if selection.matches(stack)]
    _warn_of_unread_labels(selection, stacks)
    if not matching:
        raise SelectionError(
            f"no stack matches {selection}; `lakewright fleet list` lists the stacks with their labels"
            if stacks
            else f"{project.stack_config_dir} has no Pulumi.STACK.yaml; `lakewright new TENANT` writes one"
        )
    return matching


def _read_stack(name: str, file: Path | None) -> SelectedStack:
    if file is None:
        return SelectedStack(name)
    spec = read_unchecked_spec(file)
    return SelectedStack(name, spec.document, spec.error)


def _warn_of_unread_labels(selection: Selection, stacks: Iterable[SelectedStack]) -> None:
    """Warn of each stack that does not match only because its labels cannot be read."""
    for stack in stacks:
        if stack.error is None or selection.matches(stack) or not replace(selection, labels={}).matches(stack):
            continue
        reason = escape_line(" ".join(str(stack.error).split()))
        print(
            f"warning: --label: stack {stack.name} is left out, as its labels cannot be read: {reason}", file=sys.stderr
        )
