"""Values that specs share: a spec with `extends` is merged with files of defaults/. Specs without it are not changed.

Mappings are merged key by key, and `null` removes an inherited key. Lists and other values replace the inherited
value. Later names of `extends` override earlier names, and a file overrides what it extends.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import yaml
from lakewright_spark.suggestions import suggest_name

from lakewright.project_files import PROJECT_FILES
from lakewright.validation.documents import as_mapping
from lakewright.validation.positions import find_positions, make_syntax_problem
from lakewright.validation.problems import Problem, SpecError
from lakewright.validation.yaml_text import load_yaml

EXTENDS = "extends"
FOLDER = "defaults"
"""Folder of a project with the files that specs extend."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_OWN_KEYS = ("name",)
"""Keys that files of defaults/ may not have."""


@dataclass(frozen=True)
class MergedSpec:
    """A spec with the values that it extends, without `extends`."""

    document: Mapping[str, Any]
    origins: Mapping[str, Path] = field(default_factory=dict[str, Path])
    """File of each inherited value by its path. Paths of the spec's own values are left out."""
    own_paths: frozenset[str] = frozenset()
    """Paths of the spec's own values, where it inherits any."""

    def find_origin(self, path: str) -> Path | None:
        """Return the file of defaults/ that a value, or the value that it is in, comes from; None for own values."""
        while path:
            if path in self.own_paths:
                return None
            if origin := self.origins.get(path):
                return origin
            path = path.rpartition(".")[0]
        return None


@dataclass
class _Value:
    """A value and the file that sets it; None for the spec. The content of a mapping has values of its own."""

    content: Any
    file: Path | None


def find_folder(stack_file: Path) -> Path:
    """Return the folder of the files that a stack file can extend: beside the Pulumi.yaml of its project."""
    for folder in (*stack_file.parents, *stack_file.resolve().parents):
        if any((folder / name).is_file() for name in PROJECT_FILES):
            return folder / FOLDER
    return stack_file.parent / FOLDER


def merge_defaults(document: Mapping[str, Any], folder: Path, source: str) -> MergedSpec:
    """Return a spec with the values that it extends.

    Args:
        document: The spec as written.
        folder: Folder of the files to extend.
        source: Where the spec was read, for messages.

    Raises:
        SpecError: A file does not exist or is invalid, or files extend one another in a cycle. Problems of files of
            defaults/ have positions.
    """
    if EXTENDS not in document:
        return MergedSpec(document)
    try:
        inherited = _read_extended(document[EXTENDS], None, folder, ())
    except SpecError as error:
        raise SpecError(source, error.problems) from None
    spec = _wrap({key: value for key, value in document.items() if key != EXTENDS}, None)
    merged = _merge(inherited, spec) if inherited else spec
    origins: dict[str, Path] = {}
    own_paths: set[str] = set()
    plain = _unwrap(merged, "", origins, own_paths)
    return MergedSpec(cast("dict[str, Any]", plain), origins, frozenset(own_paths))


def read_merged_spec(file: Path, *sections: str) -> MergedSpec:
    """Return the spec of a stack file with the values that it extends; empty if a file is invalid.

    Args:
        file: The stack file.
        sections: Keys that lead to the spec in the stack file.
    """
    with suppress(SpecError, OSError, UnicodeDecodeError, yaml.YAMLError):
        document: object = load_yaml(file.read_text(encoding="utf-8"))
        for section in sections:
            document = as_mapping(document).get(section)
        return merge_defaults(as_mapping(document), find_folder(file), str(file))
    return MergedSpec({})


def find_place(merged: MergedSpec, path: str) -> str:
    """Return file and line of an inherited value, such as `defaults/base.yaml:3`; empty for own values."""
    origin = merged.find_origin(path)
    if origin is None:
        return ""
    position = find_positions([Problem(path, "")], origin)[0].position
    return f"{FOLDER}/{origin.name}" + (f":{position.line}" if position else "")


def find_spec_positions(problems: Sequence[Problem], file: Path, *sections: str) -> list[Problem]:
    """Return problems of a spec with their positions, in the stack file or in the file of defaults/ with the value.

    Args:
        problems: The problems.
        file: The stack file.
        sections: Keys that lead to the spec in the stack file.
    """
    merged = read_merged_spec(file, *sections)
    located: list[Problem] = []
    for problem in problems:
        origin = None if problem.position else merged.find_origin(problem.path)
        located += find_positions([problem], origin) if origin else [problem]
    return find_positions(located, file, *sections)


@contextmanager
def locate_spec_problems(file: Path, *sections: str) -> Generator[None]:
    """Add the positions of `find_spec_positions` to the problems of a SpecError that is raised in the block."""
    try:
        yield
    except SpecError as error:
        raise SpecError(error.source, find_spec_positions(error.problems, file, *sections)) from None


def _read_extended(names: object, file: Path | None, folder: Path, chain: tuple[str, ...]) -> _Value | None:
    """Return the merged values of the files that a spec or file extends; None if it names none."""
    merged: _Value | None = None
    for path, name in _parse_names(names, file):
        if name in chain:
            cycle = " extends ".join((*chain[chain.index(name) :], name))
            raise _make_error(file, path, f"expected no cycle; {cycle}. Remove one of these names")
        value = _read_file(name, path, file, folder, (*chain, name))
        merged = value if merged is None else _merge(merged, value)
    return merged


def _read_file(name: str, path: str, source: Path | None, folder: Path, chain: tuple[str, ...]) -> _Value:
    """Return the values of a file with the values that it extends."""
    file = folder / f"{name}.yaml"
    try:
        document: object = load_yaml(file.read_text(encoding="utf-8"))
    except OSError:
        names = sorted(candidate.stem for candidate in folder.glob("*.yaml"))
        hint = f"the folder has {', '.join(names)}{suggest_name(name, names)}" if names else "the folder has no files"
        raise _make_error(source, path, f"expected NAME of a file {FOLDER}/NAME.yaml; {hint}", name) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise SpecError(str(file), [make_syntax_problem(file, error)]) from None
    if not isinstance(document, dict):
        raise SpecError(str(file), [Problem("", "expected a mapping with parts of a spec")])
    values = cast("dict[str, Any]", document)
    if refused := [key for key in _OWN_KEYS if key in values]:
        raise _make_error(file, refused[0], f"expected no `{refused[0]}` in {FOLDER}/: each tenant has its own")
    inherited = _read_extended(values.get(EXTENDS, []), file, folder, chain)
    content = _wrap({key: value for key, value in values.items() if key != EXTENDS}, file)
    return _merge(inherited, content) if inherited else content


def _parse_names(names: object, file: Path | None) -> list[tuple[str, str]]:
    """Return path and name of each file in a value of `extends`."""
    entries = cast("list[object]", names) if isinstance(names, list) else [names]
    parsed: list[tuple[str, str]] = []
    for index, name in enumerate(entries):
        path = f"{EXTENDS}.{index}" if isinstance(names, list) else EXTENDS
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise _make_error(file, path, f"expected the NAME of a file {FOLDER}/NAME.yaml, or a list of names")
        parsed.append((path, name))
    return parsed


def _make_error(file: Path | None, path: str, expected: str, value: str = "") -> SpecError:
    """Return the error of a value of a file, or of the spec, whose reader adds the position."""
    problem = Problem(path, expected, value)
    return SpecError(str(file) if file else FOLDER, find_positions([problem], file) if file else [problem])


def _wrap(value: object, file: Path | None) -> _Value:
    if isinstance(value, Mapping):
        entries = cast("Mapping[str, object]", value)
        return _Value({key: _wrap(entry, file) for key, entry in entries.items()}, file)
    return _Value(value, file)


def _merge(base: _Value, over: _Value) -> _Value:
    merged, entries = _list_entries(base), _list_entries(over)
    if merged is None or entries is None:
        return over
    merged = dict(merged)
    for key, value in entries.items():
        inherited = merged.pop(key, None)
        if inherited is None:
            merged[key] = value
        elif value.content is not None:
            merged[key] = _merge(inherited, value)
    return _Value(merged, over.file)


def _list_entries(value: _Value) -> dict[str, _Value] | None:
    """Return the entries of a mapping; None for other values."""
    content: object = value.content
    return cast("dict[str, _Value]", content) if isinstance(content, dict) else None


def _unwrap(value: _Value, path: str, origins: dict[str, Path], own_paths: set[str]) -> object:
    """Return the plain value, and note the origin of each value in it."""
    if value.file is None:
        own_paths.add(path)
    else:
        origins[path] = value.file
    entries = _list_entries(value)
    if entries is None:
        return value.content
    return {
        key: _unwrap(entry, f"{path}.{key}" if path else str(key), origins, own_paths) for key, entry in entries.items()
    }
