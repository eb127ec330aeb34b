"""Stack files of the project that declare the same tenant or place as a stack, or may declare it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from lakewright.cli.environments import servers_by_environment
from lakewright.environment.errors import PlatformUnreadableError
from lakewright.project_files.stack_files import SPEC_SECTIONS, find_project_id, raw_spec, shares_project
from lakewright.storage.registry import creates_bucket
from lakewright.validation.documents import as_mapping, as_text, list_items, list_names

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from lakewright_engine.project.project import PulumiProject

    from lakewright.cli.ownership.server_access import ServerAccess
    from lakewright.project_files.servers import Servers
    from lakewright.spec import TenantSpec

_REPAIR = "Correct that file, or remove it: until then it is treated as a possible owner"


@dataclass
class _OtherFiles:
    """Other stack files that mention a name of a spec."""

    specs: dict[str, TenantSpec] = field(default_factory=dict[str, "TenantSpec"])
    """Valid specs by path."""
    mistaken: dict[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    """Specs with mistakes, as written, by path."""
    unreadable: dict[str, str] = field(default_factory=dict[str, str])
    """Why files cannot be read, by path."""


def refuse_shared_tenant(access: ServerAccess, stack: str) -> None:
    """Check that no other stack file of the project declares the same tenant or an overlapping place.

    A file that cannot be read and mentions the tenant or a bucket is a possible owner, and so is a spec with mistakes
    that declares them.

    Raises:
        SpecError: Another stack file does, or may do so.
    """
    project = access.project
    file = project.stack_file(stack)
    raw = raw_spec(file)
    names = _names(raw)
    other_files = _read_others(project, file, names, is_sharing=shares_project(raw)) if names else _OtherFiles()
    if not (other_files.specs or other_files.mistaken or other_files.unreadable):
        return
    from lakewright.project_files.shared_values import find_spec_positions  # noqa: PLC0415
    from lakewright.spec import Problem, SpecError, read_stack_file  # noqa: PLC0415 - slow to load
    from lakewright.spec.stack_conflicts import find_stack_conflicts  # noqa: PLC0415

    try:
        spec = read_stack_file(file)
    except SpecError:
        return  # the run reports it
    servers = _with_server_ids(access, stack, spec, other_files.specs)
    conflicts = [*find_stack_conflicts(spec, other_files.specs, servers), *_possible_owners(spec, other_files, servers)]
    if conflicts:
        problems = [Problem(path, expected) for path, expected in conflicts]
        raise SpecError(str(file), find_spec_positions(problems, file, *SPEC_SECTIONS))


def _read_others(project: PulumiProject, file: Path, names: list[str], *, is_sharing: bool) -> _OtherFiles:
    from lakewright.spec import SpecError, read_stack_file  # noqa: PLC0415 - slow to load

    other_files = _OtherFiles()
    for other in sorted(project.stack_config_dir.glob("Pulumi.*.yaml")):
        if other.resolve() == file.resolve():
            continue
        try:
            text = other.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            other_files.unreadable[str(other)] = " ".join(str(error).split())
            continue
        if not any(name in text for name in names) and not _has_hidden_names(other, text, names, is_sharing=is_sharing):
            continue
        try:
            other_files.specs[str(other)] = read_stack_file(other)
        except SpecError as error:
            if raw := raw_spec(other):
                other_files.mistaken[str(other)] = raw
            elif not _is_yaml(text) and any(_mentions(text, name) for name in names):
                other_files.unreadable[str(other)] = str(error.problems[0])
    return other_files


def _has_hidden_names(file: Path, text: str, names: list[str], *, is_sharing: bool) -> bool:
    """Return whether a spec has a name from defaults, or roles in the same shared project, which may have one name."""
    if "extends" not in text and not (is_sharing and "shared" in text):
        return False
    raw = raw_spec(file)
    merged_text = str(raw)
    return any(name in merged_text for name in names) or (is_sharing and shares_project(raw))


def _possible_owners(
    spec: TenantSpec, other_files: _OtherFiles, servers: Callable[[str], Servers]
) -> Iterator[tuple[str, str]]:
    """Yield path and problem for each file that cannot be read, or declares the tenant or a bucket with mistakes."""
    for name, reason in other_files.unreadable.items():
        yield (
            "name",
            f"expected a tenant that no other stack declares; {name} may declare it, and cannot be read ({reason})."
            f" {_REPAIR}",
        )
    own_buckets = {
        storage.bucket: f"storage.{key}.bucket" for key, storage in spec.storage.items() if storage.makes_bucket
    }
    for name, raw in other_files.mistaken.items():
        environment = as_text(raw.get("environment"))
        is_elsewhere = (
            environment is not None and servers(environment).lakekeeper != servers(spec.environment).lakekeeper
        )
        is_same_project = find_project_id(raw) == spec.project_id and not (shares_project(raw) and spec.shares_project)
        if not is_elsewhere and (is_same_project or raw.get("name") == spec.name):
            yield (
                "name",
                f"expected a tenant that no other stack declares; {name}, whose spec has mistakes, declares tenant"
                f" `{spec.name}` too. {_REPAIR}",
            )
            continue
        for bucket in own_buckets.keys() & set(_list_created_buckets(raw)):
            yield (
                own_buckets[bucket],
                f"expected a place that no other stack uses; {name}, whose spec has mistakes, declares bucket"
                f" `{bucket}` too. {_REPAIR}",
            )


def _with_server_ids(
    access: ServerAccess, stack: str, spec: TenantSpec, other_specs: Mapping[str, TenantSpec]
) -> Callable[[str], Servers]:
    """Return the servers of environments. A Lakekeeper with two addresses has one address there.

    Servers are identified only for tenants of one name in environments of different addresses.
    """
    by_address = servers_by_environment(access.project.root)
    own_address = by_address(spec.environment).lakekeeper
    same: set[str] = set()
    for file, other in other_specs.items():
        is_same_tenant = other.name == spec.name or other.project_id == spec.project_id
        if not is_same_tenant or by_address(other.environment).lakekeeper == own_address or other.environment in same:
            continue
        other_stack = file.rpartition("Pulumi.")[2].removesuffix(".yaml")
        ids = (_server_id(access, stack, spec.environment), _server_id(access, other_stack, other.environment))
        if ids[0] is not None and ids[0] == ids[1]:
            same.add(other.environment)

    def servers(name: str) -> Servers:
        return replace(by_address(name), lakekeeper=own_address) if name in same else by_address(name)

    return servers


def _server_id(access: ServerAccess, stack: str, environment: str) -> str | None:
    """Return the id of an environment's Lakekeeper; None if the server does not respond."""
    from lakewright.cli.ownership.server_ids import find_server_id  # noqa: PLC0415 - slow to load
    from lakewright.spec import SpecError  # noqa: PLC0415 - slow to load

    try:
        reference = access.load_environment(environment).lakekeeper.reference
    except (SpecError, PlatformUnreadableError):
        return None
    return find_server_id(access, stack, reference)


def _is_yaml(text: str) -> bool:
    from lakewright_engine.project.yaml_text import load_yaml  # noqa: PLC0415 - `--help` reads no file
    from yaml import YAMLError  # noqa: PLC0415

    try:
        load_yaml(text)
    except YAMLError:
        return False
    return True


def _mentions(text: str, name: str) -> bool:
    """Return whether a text has a name as a whole word."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", text) is not None


def _list_created_buckets(raw: Mapping[str, Any]) -> Iterator[str]:
    """Yield the buckets that a spec, as written, has its stack create."""
    for storage in map(as_mapping, as_mapping(raw.get("storage")).values()):
        if (bucket := as_text(storage.get("bucket"))) and creates_bucket(storage):
            yield bucket


def _names(spec: Mapping[str, Any]) -> list[str]:
    """Return the names that a file must mention to declare the same tenant, an overlapping place or the same client."""
    storage: Any = spec.get("storage")
    parts: list[Any] = list(cast(dict[str, Any], storage).values()) if isinstance(storage, dict) else []
    buckets = [cast(dict[str, Any], part).get("bucket") for part in parts if isinstance(part, dict)]
    ids = (spec.get("name"), as_mapping(spec.get("project")).get("id"))
    warehouses = list_names(spec, "warehouses") if shares_project(spec) else []
    return [str(name) for name in (*ids, *buckets, *warehouses, *_subjects(spec)) if name]


def _subjects(spec: Mapping[str, Any]) -> Iterator[object]:
    """Yield the subjects of the clients of tenant, units and jobs."""
    units = [unit for _, unit in list_items(spec, "computing_units")]
    for owner in (spec, as_mapping(spec.get("maintenance")), *units):
        yield as_mapping(owner.get("identity")).get("subject")
