"""Rules on pods: no secrets in their environment, no privileges, images by digest."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lakewright_policy.resource import UNKNOWN, CheckedResource, ResourceRule, as_mapping, items
from lakewright_policy.secret_text import SENSITIVE_WORDS, has_secret_argument, has_secret_text

_WORKLOADS = re.compile(
    r"kubernetes:[^:]+:(Pod|PodTemplate|ReplicationController|Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|CronJob)"
    r"(Patch|List)?"
)
"""Kinds with pods, in every version of their API."""
_SECRET_NAME = re.compile(SENSITIVE_WORDS, re.IGNORECASE)
_NEVER = re.compile(
    r"AWS_(ACCESS_KEY_ID|SECRET_ACCESS_KEY|SESSION_TOKEN)|.*JWT.*SECRET.*|.*(JDBC|POSTGRES|DB|DATABASE).*PASS.*",
    re.IGNORECASE,
)
"""Secrets that no pod of a tenant needs: keys of the storage, the database's password, the platform's signing key."""
_REFERENCE = re.compile(r"(file:|env:|vault:|aws-secretsmanager:|/).*")
"""A value that names where a secret is."""
_DIGEST = re.compile(r".+@sha256:[0-9a-f]{64}")


def _pod_specs(resource: CheckedResource) -> Iterator[Mapping[str, Any]]:
    """Yield the specs of the pods: one, or one for each item of a list."""
    is_list = resource.type.endswith("List")
    for manifest in map(as_mapping, items(resource.props.get("items"))) if is_list else (resource.props,):
        spec = as_mapping(manifest if "template" in manifest else manifest.get("spec"))
        if "jobTemplate" in spec:
            spec = as_mapping(as_mapping(spec["jobTemplate"]).get("spec"))
        yield as_mapping(as_mapping(spec["template"]).get("spec")) if "template" in spec else spec


def _containers(pod: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for section in ("initContainers", "containers", "ephemeralContainers"):
        yield from map(as_mapping, items(pod.get(section)))


def _check_containers(
    check: Callable[[Mapping[str, Any]], Iterator[str]],
) -> Callable[[CheckedResource], Iterator[str]]:
    def find_violations(resource: CheckedResource) -> Iterator[str]:
        for pod in _pod_specs(resource):
            for container in _containers(pod):
                yield from (f"container `{container.get('name')}` {message}" for message in check(container))

    return find_violations


def _secrets(container: Mapping[str, Any]) -> Iterator[str]:
    for source in map(as_mapping, items(container.get("envFrom"))):
        if "secretRef" in source:
            secret = as_mapping(source["secretRef"]).get("name")
            yield f"gets all keys of Secret `{secret}`: mount the key that it needs"
    for variable in map(as_mapping, items(container.get("env"))):
        name, value = str(variable.get("name")), variable.get("value")
        if _NEVER.fullmatch(name):
            yield f"has the variable {name}: the catalog vends access, so remove it"
        elif _SECRET_NAME.search(name) and isinstance(value, str) and value and not _REFERENCE.fullmatch(value):
            yield f"has the secret {name} in its manifest: mount it as a file from a Secret"
        elif isinstance(value, str) and has_secret_text(value):
            yield f"has a secret in the value of {name}: mount it as a file from a Secret"
    if any(has_secret_argument(command) for command in _commands(container)):
        yield "has a secret in its command or `args`, which every reader of pods sees: mount it as a file from a Secret"


def _commands(container: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the words of each command: of the container, its probes and its hooks."""
    yield [str(word) for part in ("command", "args") for word in items(container.get(part)) if word is not UNKNOWN]
    hooks = as_mapping(container.get("lifecycle"))
    probes = [container.get(name) for name in ("livenessProbe", "readinessProbe", "startupProbe")]
    for probe in map(as_mapping, [*probes, hooks.get("postStart"), hooks.get("preStop")]):
        yield [str(word) for word in items(as_mapping(probe.get("exec")).get("command")) if word is not UNKNOWN]


def _privileges(resource: CheckedResource) -> Iterator[str]:
    for pod in _pod_specs(resource):
        yield from _find_pod_privileges(pod, is_partial=resource.type.endswith("Patch"))


def _find_pod_privileges(pod: Mapping[str, Any], *, is_partial: bool) -> Iterator[str]:
    """Yield what a pod may do. A patch leaves out what it does not change, so only what it sets counts."""
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(name) is True:
            yield f"the pod uses the node's namespaces (`{name}`): remove it"
    for volume in map(as_mapping, items(pod.get("volumes"))):
        if "hostPath" in volume:
            yield f"volume `{volume.get('name')}` mounts a path of the node: use another kind of volume"
    pod_context = as_mapping(pod.get("securityContext"))
    for container in _containers(pod):
        for message in _find_container_privileges(
            as_mapping(container.get("securityContext")), pod_context, is_partial=is_partial
        ):
            yield f"container `{container.get('name')}` {message}"


def _find_container_privileges(
    security_context: Mapping[str, Any], pod_context: Mapping[str, Any], *, is_partial: bool
) -> Iterator[str]:
    capabilities = as_mapping(security_context.get("capabilities"))
    unset = UNKNOWN if is_partial else None
    if security_context.get("privileged") is True:
        yield "is privileged: remove `privileged`"
    if security_context.get("allowPrivilegeEscalation", unset) not in (False, UNKNOWN):
        yield "may gain privileges: set `allowPrivilegeEscalation: false`"
    if security_context.get("runAsNonRoot", pod_context.get("runAsNonRoot", unset)) not in (True, UNKNOWN):
        yield "may run as root: set `runAsNonRoot: true`"
    if security_context.get("runAsUser", pod_context.get("runAsUser")) == 0:
        yield "runs as root (`runAsUser: 0`): use another user"
    if added := [str(name) for name in items(capabilities.get("add"))]:
        yield f"adds capabilities ({', '.join(added)}): remove them"
    if capabilities.get("drop", unset) is not UNKNOWN and "ALL" not in items(capabilities.get("drop")):
        yield "keeps capabilities: drop `ALL`"


def _find_tagged_image(container: Mapping[str, Any]) -> Iterator[str]:
    image = container.get("image")
    if isinstance(image, str) and not _DIGEST.fullmatch(image):
        yield f"names its image by tag (`{image}`), which may change: add its digest, NAME@sha256:..."


POD_SECRETS = ResourceRule(
    "pod-with-secrets",
    "Computing units and jobs have no secrets in their environment.",
    _WORKLOADS,
    _check_containers(_secrets),
)
POD_PRIVILEGES = ResourceRule(
    "pod-with-privileges", "Computing units and jobs run without privileges.", _WORKLOADS, _privileges
)
IMAGE_WITHOUT_DIGEST = ResourceRule(
    "image-without-digest",
    "Images are named by digest.",
    _WORKLOADS,
    _check_containers(_find_tagged_image),
    is_warning=True,
)
