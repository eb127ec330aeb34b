"""Edit an exported state: remove, unprotect or rename resources.

The functions change a deployment in the form of `pulumi stack export` and follow the rules of
`pulumi state delete`, `pulumi state unprotect` and `pulumi state rename`. Secrets remain encrypted.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lakewright_engine.model.errors import StateError
from lakewright_engine.model.urns import Urn, is_provider_type, split_reference

Deployment = dict[str, Any]
Resource = dict[str, Any]


def remove(
    deployment: Deployment, urns: Iterable[str], *, force: bool = False, target_dependents: bool = False
) -> list[str]:
    """Remove resources from a state. Their objects are kept.

    Args:
        deployment: The exported deployment.
        urns: The resources to remove.
        force: Remove protected resources too.
        target_dependents: Also remove the resources that depend on them.

    Returns:
        The URNs of the removed resources, dependents first.

    Raises:
        StateError: A URN is unknown or names several resources, a resource is protected, or others depend on it.
    """
    selected_resources = [_find(_resources(deployment), urn) for urn in dict.fromkeys(urns)]
    removed = list(selected_resources)
    for resource in selected_resources:
        dependents = [other for other in _dependents(deployment, resource) if not _contains(removed, other)]
        if dependents and not target_dependents:
            dependent_lines = "".join(f"\n * {Urn.parse(other['urn']).name} ({other['urn']})" for other in dependents)
            raise StateError(
                f"{resource['urn']} cannot be removed because these resources depend on it:{dependent_lines}\n"
                "Remove them first, or use --target-dependents."
            )
        removed.extend(dependents)
    for resource in removed:
        if resource.get("protect") and not force:
            raise StateError(f"{resource['urn']} is protected; use --force to remove it from the state")
    kept_resources = [resource for resource in deployment["resources"] if not _contains(removed, resource)]
    order = [resource["urn"] for resource in reversed(deployment["resources"]) if _contains(removed, resource)]
    deployment["resources"] = kept_resources
    return order


def unprotect(deployment: Deployment, urns: Iterable[str] | None = None) -> list[str]:
    """Clear the protection of resources, or of all resources if `urns` is None.

    Returns:
        The URNs of the resources that were protected.

    Raises:
        StateError: A URN is unknown or names several resources.
    """
    resources = [resource for resource in _resources(deployment) if not resource.get("delete")]
    if urns is not None:
        resources = [_find(resources, urn) for urn in dict.fromkeys(urns)]
    return [resource["urn"] for resource in resources if resource.pop("protect", False)]


def rename(deployment: Deployment, urn: str, name: str) -> str:
    """Rename a resource and update the references to it. Its children keep their names.

    Returns:
        The new URN.

    Raises:
        StateError: The URN is unknown or names several resources, or the name is invalid or taken.
    """
    if not name or "::" in name:
        raise StateError(f"{name!r} is not a resource name: expected text without '::'")
    resource = _find(_resources(deployment), urn)
    old = Urn.parse(urn)
    new = str(Urn(old.stack, old.project, old.qualified_type, name))
    if new == urn:
        return new
    if any(other["urn"] == new for other in _resources(deployment)):
        raise StateError(f"{urn} cannot be renamed: the state already holds {new}")
    _change_urns(deployment, {urn: new})
    if is_provider_type(resource["type"]):
        for other in _resources(deployment):
            provider, provider_id = split_reference(other.get("provider") or "")
            if provider == urn:
                other["provider"] = f"{new}::{provider_id}"
    return new


def _change_urns(deployment: Deployment, renamed: dict[str, str]) -> None:
    """Update all references to renamed resources. The name of a parent is not part of its children's URNs."""

    def current(value: str) -> str:
        return renamed.get(value, value)

    operations: list[dict[str, Any]] = deployment.get("pending_operations") or []
    for resource in [*_resources(deployment), *(operation["resource"] for operation in operations)]:
        for key in ("urn", "parent", "deletedWith", "viewOf"):
            if resource.get(key):
                resource[key] = current(resource[key])
        for key in ("dependencies", "replaceWith"):
            if resource.get(key):
                resource[key] = [current(value) for value in resource[key]]
        by_property = _property_dependencies(resource)
        for key, values in by_property.items():
            by_property[key] = [current(value) for value in values or ()]


def _find(resources: list[Resource], urn: str) -> Resource:
    """Return the resource of a URN.

    Raises:
        StateError: No resource or several resources have the URN.
    """
    matches = [resource for resource in resources if resource["urn"] == urn]
    if not matches:
        raise StateError(f"the state holds no resource {urn!r}; `lakewright state ls` lists the URNs")
    if len(matches) > 1:
        raise StateError(
            f"the state holds {len(matches)} resources {urn!r}, one of which is to be deleted; "
            "run `up`, or edit the output of `lakewright stack export` and import it"
        )
    return matches[0]


def _dependents(deployment: Deployment, resource: Resource) -> list[Resource]:
    """Return the resources that depend on this resource and on no other of its URN, as the CLI's OnlyDependsOn does."""
    resources = _resources(deployment)
    index = next(at for at, other in enumerate(resources) if other is resource)
    other_urns = {other["urn"] for other in resources[:index]}
    reached: dict[str, set[str]] = {resource["urn"]: {resource.get("id", "")}}
    dependents: list[Resource] = []
    for other in resources[index + 1 :]:
        if _depends(other, reached, other_urns):
            dependents.append(other)
            reached.setdefault(other["urn"], set()).add(other.get("id", ""))
        else:
            other_urns.add(other["urn"])
    return dependents


def _depends(resource: Resource, reached: dict[str, set[str]], other_urns: set[str]) -> bool:
    provider, provider_id = split_reference(resource.get("provider") or "")
    if provider_id in reached.get(provider, ()):
        return True
    needed = {
        resource.get("parent"),
        resource.get("deletedWith"),
        *(resource.get("dependencies") or ()),
        *(resource.get("replaceWith") or ()),
    }
    for urns in _property_dependencies(resource).values():
        needed.update(urns or ())
    return any(urn in reached and urn not in other_urns for urn in needed if urn)


def _property_dependencies(resource: Resource) -> dict[str, list[str] | None]:
    return resource.get("propertyDependencies") or {}


def _contains(resources: list[Resource], resource: Resource) -> bool:
    return any(other is resource for other in resources)


def _resources(deployment: Deployment) -> list[Resource]:
    return deployment.get("resources") or []
