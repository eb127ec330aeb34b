"""Check that a state is consistent, by the rules of the Pulumi CLI."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from typing import Any

from lakewright_engine.model.errors import StateError
from lakewright_engine.model.resources import ResourceState, StackSnapshot
from lakewright_engine.model.urns import is_provider_type


def check_integrity(stack: str, snapshot: StackSnapshot) -> None:
    """Check that every resource refers only to resources before it and occurs once.

    Raises:
        StateError: The snapshot is inconsistent.
    """
    damaged = f"the state of stack '{stack}' is inconsistent"
    everything = {resource.urn for resource in snapshot.resources}
    earlier_urns: set[str] = set()
    providers: set[str] = set()
    for resource in snapshot.resources:
        for reason in _problems(resource):
            raise StateError(f"{damaged}: {reason}")
        if is_provider_type(resource.type):
            providers.add(f"{resource.urn}::{resource.id}")
        if resource.provider and resource.provider not in providers and not resource.pending_replacement:
            raise StateError(
                f"{damaged}: '{resource.urn}' refers to the provider '{resource.provider}', which does not precede it "
                "with this id"
            )
        for role, urn in references(resource):
            if urn not in earlier_urns:
                problem = "comes after it" if urn in everything else "is missing"
                raise StateError(f"{damaged}: '{resource.urn}' refers to '{urn}' as its {role}, which {problem}")
        earlier_urns.add(resource.urn)
    live = Counter(resource.urn for resource in snapshot.resources if not resource.delete)
    for urn, count in live.items():
        if count > 1:
            raise StateError(f"{damaged}: '{urn}' occurs twice")


def check_magic(stack: str, deployment: dict[str, Any]) -> None:
    """Check the checksum of the version that wrote a state.

    Raises:
        StateError: The checksum does not match the version.
    """
    manifest: dict[str, Any] = deployment.get("manifest") or {}
    version, magic = str(manifest.get("version", "")), manifest.get("magic")
    if magic and magic != hashlib.sha256(version.encode()).hexdigest():
        raise StateError(f"the state of stack '{stack}' is damaged: manifest.magic does not match manifest.version")


def _problems(resource: ResourceState) -> Iterator[str]:
    if not resource.urn:
        yield "a resource has no URN"
    if not resource.type:
        yield f"'{resource.urn}' has no type"
    if not resource.custom and resource.id:
        yield f"'{resource.urn}' is a component, but has the id '{resource.id}'"
    if is_provider_type(resource.type) and not resource.id:
        yield f"the provider '{resource.urn}' has no id"


def references(resource: ResourceState) -> Iterator[tuple[str, str]]:
    """Yield role and URN of each reference of a resource, except that to its provider."""
    if resource.parent:
        yield "parent", resource.parent
    for urn in filter(None, resource.dependencies):
        yield "dependency", urn
    for key, urns in resource.property_dependencies.items():
        for urn in filter(None, urns or ()):
            yield f"dependency of the property {key}", urn
    if resource.deleted_with:
        yield "deletedWith", resource.deleted_with
    for urn in filter(None, resource.replace_with):
        yield "replaceWith", urn
