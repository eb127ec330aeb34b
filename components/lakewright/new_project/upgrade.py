"""Conversion of a project of an earlier version. Pure functions of its files' texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from packaging.utils import canonicalize_name

from lakewright.new_project.files import SCHEMAS, list_schemas
from lakewright.new_project.requirements import CONSTRAINTS, HEAD, build_constraints, pin_lakewright

_PROGRAM_IMPORT = re.compile(r"^from lakewright\.program import declare_tenant$", re.MULTILINE)
_EARLIER_SPEC_KEY = re.compile(r"^(\s+)lakewright:config:tenant:", re.MULTILINE)
_EARLIER_SCHEMA = re.compile(r"(yaml-language-server: \$schema=)\.\./docs/schema/")
_CHECKOUT_SETUP = "make setup"
INSTALL = "python -m venv .venv && .venv/bin/pip install --quiet -r requirements.txt"
"""Command with which CI installs the packages of a project."""


def list_changes(root: Path) -> dict[Path, tuple[str, str]]:
    """Return the files that differ in a project of this version: their text now, and the new text.

    Args:
        root: Folder of the project.
    """
    changes: dict[Path, tuple[str, str]] = {}
    for path, convert in _list_conversions(root):
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        if (converted := convert(text)) != text:
            changes[path.relative_to(root)] = (text, converted)
    return changes


def convert_program(text: str) -> str:
    """Return a program that imports `declare_tenant` from the package."""
    return _PROGRAM_IMPORT.sub("from lakewright import declare_tenant", text)


def convert_requirements(text: str) -> str:
    """Return requirements with the installed version of Lakewright. All lines that a user added are kept."""
    if text.startswith(HEAD) and f"-c {CONSTRAINTS}" not in text.splitlines():
        text = _replace_pins(text)
    pin = pin_lakewright().partition("==")[2]
    return re.sub(r"^(lakewright(?:-\w+)?(?:\[[^\]]*\])?)==[^\s;#]+", rf"\1=={pin}", text, flags=re.MULTILINE)


def _replace_pins(text: str) -> str:
    """Return requirements with the constraints. `init` of an earlier version wrote a pin for each package instead."""
    names = {line.partition("==")[0] for line in build_constraints().splitlines()}
    lines = text.removeprefix(HEAD).splitlines(keepends=True)
    remaining = [line for line in lines if "==" not in line or canonicalize_name(line.partition("==")[0]) not in names]
    return f"{HEAD}-c {CONSTRAINTS}\n{''.join(remaining)}"


def convert_stack_file(text: str) -> str:
    """Return a stack file with today's key of the spec, and the schema of the project."""
    return convert_schema_line(_EARLIER_SPEC_KEY.sub(r"\1lakewright:tenant:", text))


def convert_schema_line(text: str) -> str:
    """Return a YAML file whose first line names the schema of the project."""
    return _EARLIER_SCHEMA.sub(r"\1../schema/", text)


def convert_ci(text: str) -> str:
    """Return a CI file that installs the requirements of the project, where it set up a checkout of Lakewright."""
    return text.replace(_CHECKOUT_SETUP, INSTALL)


def _list_conversions(root: Path) -> Iterator[tuple[Path, Callable[[str], str]]]:
    if (root / "requirements.txt").is_file():
        yield root / "requirements.txt", convert_requirements
        if (root / "requirements.txt").read_text(encoding="utf-8").startswith(HEAD):
            yield root / CONSTRAINTS, _make_replacement(build_constraints())
    yield from ((path, convert_program) for path in sorted(root.glob("*.py")))
    yield from ((path, convert_stack_file) for path in sorted((root / SCHEMAS["tenant"]).glob("Pulumi.*.yaml")))
    yield from ((path, convert_schema_line) for path in sorted((root / SCHEMAS["environment"]).glob("*.yaml")))
    yield from ((path, convert_ci) for path in _list_ci_files(root))
    folders = [folder for folder in SCHEMAS.values() if (root / folder).is_dir()]
    yield from ((root / path, _make_replacement(text)) for path, text in list_schemas(folders).items())


def _list_ci_files(root: Path) -> list[Path]:
    return [
        path
        for path in (*sorted((root / ".github" / "workflows").glob("*.y*ml")), root / ".gitlab-ci.yml")
        if path.is_file()
    ]


def _make_replacement(text: str) -> Callable[[str], str]:
    return lambda _: text


def format_changes(changes: Mapping[Path, tuple[str, str]]) -> Iterator[str]:
    """Yield the lines of the unified differences; of a new file and of a schema, one line."""
    from difflib import unified_diff  # noqa: PLC0415 - only if something differs

    for path, (before, after) in changes.items():
        if not before or path.suffix == ".json":
            yield f"{path}: {'changed' if before else 'new'}, {len(after.splitlines())} lines"
            continue
        yield from unified_diff(before.splitlines(), after.splitlines(), f"{path} (now)", f"{path} (new)", lineterm="")
