"""The values that a stack's spec has in effect, and where each comes from. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

from lakewright.environment.environment import Environment
from lakewright.environment.unit_identity import find_identities
from lakewright.names.object_names import namespace_name, role_name
from lakewright.spec import TenantSpec
from lakewright.spec.checks.cross_checks import is_on_aws
from lakewright.spec.quota import RESOURCES, effective, read_amount, sum_amounts
from lakewright.spec.standard_roles import standard_roles
from lakewright.validation.documents import as_list, as_mapping

_ABSENT = object()


class ValueSource(StrEnum):
    """Where a value comes from."""

    SPEC = "spec"
    SHARED = "shared values"
    """A file of defaults/ that the spec extends."""
    ENVIRONMENT = "environment"
    SETTINGS = "stack settings"
    DEFAULT = "default"
    DERIVED = "derived"


@dataclass(frozen=True)
class EffectiveValue:
    """One value of a stack."""

    path: str
    """Path in the spec; that of a derived name begins with the part that it belongs to."""
    value: Any
    source: ValueSource
    place: str = ""
    """Where exactly, such as the file and key of an environment, or how a name is derived."""

    def to_json(self) -> dict[str, Any]:
        """Return the value as JSON."""
        return asdict(self)


def effective_values(
    document: Mapping[str, Any],
    spec: TenantSpec,
    environment: Environment,
    *,
    region: str | None,
    find_shared: Callable[[str], str] = lambda _path: "",
) -> list[EffectiveValue]:
    """Return all values of a spec, sorted as in the models, and then the derived names.

    Args:
        document: The spec as it is written, with the values that it extends.
        spec: The same, with defaults.
        environment: Its environment.
        region: `aws:region` of the stack's settings.
        find_shared: Returns file and line of a value that the spec extends; empty for its own values.
    """
    spec_values = _list_spec_values(document, spec.model_dump(mode="json"))
    values = {value.path: _name_shared_place(value, find_shared) for value in spec_values}
    for value in (*_from_environment(document, spec, environment, region), *_list_derived_values(spec, environment)):
        if value.path not in values or values[value.path].source is ValueSource.DEFAULT:
            values[value.path] = value
            values.pop(value.path.rpartition(".")[0], None)  # a section that the spec leaves out
    return list(values.values())


def _name_shared_place(value: EffectiveValue, find_shared: Callable[[str], str]) -> EffectiveValue:
    location = find_shared(value.path) if value.source is ValueSource.SPEC else ""
    return replace(value, source=ValueSource.SHARED, place=location) if location else value


def _list_spec_values(document: Any, value: Any, path: tuple[str, ...] = ()) -> Iterator[EffectiveValue]:
    """Yield the values of the spec and the defaults, one for each leaf."""
    if entries := as_mapping(value):
        written = as_mapping(document)
        for name, child in entries.items():
            # A shorter notation, such as a list instead of a mapping, stands for all that it sets.
            part = written.get(name, _ABSENT) if isinstance(document, Mapping) else document
            yield from _list_spec_values(part, child, (*path, name))
    elif any(isinstance(item, Mapping | list) for item in as_list(value)):
        written_items = as_list(document)
        for position, item in enumerate(as_list(value)):
            part = written_items[position] if position < len(written_items) else _ABSENT
            yield from _list_spec_values(part, item, (*path, str(position)))
    else:
        source = ValueSource.DEFAULT if document is _ABSENT else ValueSource.SPEC
        yield EffectiveValue(".".join(path), value, source)


def _from_environment(
    document: Mapping[str, Any], spec: TenantSpec, environment: Environment, region: str | None
) -> Iterator[EffectiveValue]:
    """Yield the values that the spec leaves to its environment or to the stack's settings."""
    file = f"environments/{spec.environment}.yaml"
    from_file = EffectiveValue("", None, ValueSource.ENVIRONMENT)
    for name, store in as_mapping(document.get("storage")).items():
        if is_on_aws(as_mapping(store)) and not as_mapping(store).get("region"):
            path = f"storage.{name}.region"
            if region:
                yield EffectiveValue(path, region, ValueSource.SETTINGS, "aws:region")
            elif environment.aws.region:
                yield replace(from_file, path=path, value=environment.aws.region, place=f"{file}: aws.region")
    cluster = environment.kubernetes
    for position, unit in enumerate(spec.computing_units):
        if unit.image is None:
            origin = f"{file}: kubernetes.images.{unit.runtime}"
            value = cluster.image(unit.runtime)
            yield replace(from_file, path=f"computing_units.{position}.image", value=value, place=origin)
    if spec.maintenance and spec.maintenance.image is None:
        key = "maintenance_image" if cluster.maintenance_image else "images.spark"
        value = cluster.maintenance_image or cluster.image("spark")
        yield replace(from_file, path="maintenance.image", value=value, place=f"{file}: kubernetes.{key}")
    if spec.computing_units or spec.maintenance:
        yield from _quota(spec, environment, file)


def _quota(spec: TenantSpec, environment: Environment, file: str) -> Iterator[EffectiveValue]:
    need = sum_amounts(spec.computing_units, spec.maintenance)
    limits = effective(spec.quota, environment.kubernetes.quota, need)
    for name in RESOURCES:
        source, origin = ValueSource.DERIVED, "sum of all computing units and maintenance jobs"
        if read_amount(environment.kubernetes.quota, name) is not None:
            source, origin = ValueSource.ENVIRONMENT, f"{file}: kubernetes.quota.{name}"
        yield EffectiveValue(f"quota.{name}", limits.text(name), source, origin)


def _list_derived_values(spec: TenantSpec, environment: Environment) -> Iterator[EffectiveValue]:
    """Yield the names and addresses that follow from the spec and its environment."""
    file = f"environments/{spec.environment}.yaml"
    server = environment.lakekeeper
    yield EffectiveValue("lakekeeper.endpoint", server.endpoint, ValueSource.ENVIRONMENT, f"{file}: lakekeeper")
    yield _name("lakekeeper.project_id", spec.project_id, "the tenant's name, or `project.id`")
    for position, warehouse in enumerate(spec.warehouses):
        path = f"warehouses.{position}"
        storage = spec.find_storage_name(warehouse)
        yield _name(f"{path}.storage", storage, "the named storage, or the only storage")
        yield _name(
            f"{path}.key_prefix", spec.find_key_prefix(warehouse), "`key_prefix`, or TENANT/FIRST NAME OF WAREHOUSE"
        )
        if spec.storage[storage].makes_role:
            yield _name(f"{path}.role", role_name(spec.name, warehouse.name), "lakewright.TENANT.WAREHOUSE")
    for role in standard_roles(spec):
        yield _name(f"roles.{role}", role, "role in Lakekeeper, WAREHOUSE-KIND")
    if spec.computing_units or spec.maintenance:
        yield _name("kubernetes.namespace", namespace_name(spec.name), "tenant-TENANT")
    for unit, identity in find_identities(spec, environment).items():
        user = identity.principal.user_id()
        yield _name(f"identities.{unit}", user, "user in Lakekeeper; none until the cluster assigns it, or shared")


def _name(path: str, value: Any, origin: str) -> EffectiveValue:
    return EffectiveValue(path, value, ValueSource.DERIVED, origin)
