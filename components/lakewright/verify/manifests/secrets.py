"""Find secrets in the environment, the mounts and the configuration files of pods."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, cast

import yaml

from lakewright.validation.documents import list_of, mapping_of
from lakewright.verify.manifests.workloads import PodWorkload

_SECRET_NAME = re.compile(
    r"(^|[-_.])(password|passwd|pwd|secret|token|credentials?|jwt|(access|api|private|secret|signing)[-_.]?key([-_.]id)?)$",
    re.IGNORECASE,
)
"""Names of settings whose value is a secret, unless it is a reference or a path."""
_SECRET_VALUES = (
    ("an AWS access key", re.compile(r"\b(AKIA|ASIA)[A-Z0-9]{16}\b")),
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")),
    ("a JSON web token", re.compile(r"\beyJ[\w-]{8,}\.eyJ[\w-]{8,}\.")),
    ("a URL with a password", re.compile(r"://[^/\s:@\"']+:[^/\s@\"']+@")),
)
_REFERENCE = re.compile(r"(env:|file:|/|\$\(|\$\{).*", re.DOTALL)
_NO_SECRET = frozenset({"", "true", "false", "none", "null", "[secret]"})
_MIN_KNOWN = 6
"""Shorter secrets are not searched for: they occur by chance."""


def secrets_in_pod(workload: PodWorkload, own: Collection[str], known: Collection[str] = ()) -> list[str]:
    """Return what is secret in a pod's environment and mounts, without the secrets.

    Args:
        workload: The pod.
        own: Names of the Secrets that the pod needs itself: the credential of its identity, its server's key.
        known: Secrets that must occur nowhere.
    """
    return [*_in_environment(workload, own, known), *_in_mounts(workload, own), *_in_commands(workload, known)]


def secrets_in_config_map(manifest: Mapping[str, Any], known: Collection[str] = ()) -> list[str]:
    """Return what is secret in a ConfigMap, without the secrets."""
    found: list[str] = []
    for key, value in mapping_of(manifest.get("data")).items():
        text = str(value)
        found += [f"{key}: {kind}" for kind in _kinds(text, known)]
        found += [f"{key}: a value of `{name}`" for name, setting in _settings(text) if _is_secret(name, setting)]
    return list(dict.fromkeys(found))


def _in_environment(workload: PodWorkload, own: Collection[str], known: Collection[str]) -> Iterator[str]:
    for container in workload.containers:
        for variable in map(mapping_of, list_of(container.get("env"))):
            name, value = str(variable.get("name")), variable.get("value")
            reference = mapping_of(mapping_of(variable.get("valueFrom")).get("secretKeyRef"))
            if reference and reference.get("name") not in own:
                yield f"variable {name} from Secret {reference.get('name')}"
            if isinstance(value, str):
                yield from (f"variable {name}: {kind}" for kind in _kinds(value, known))
                if _is_secret(name, value):
                    yield f"variable {name} has a value"
        for source in map(mapping_of, list_of(container.get("envFrom"))):
            secret = mapping_of(source.get("secretRef")).get("name")
            if secret and secret not in own:
                yield f"all variables of Secret {secret}"


def _in_mounts(workload: PodWorkload, own: Collection[str]) -> Iterator[str]:
    for volume in map(mapping_of, list_of(workload.spec.get("volumes"))):
        name = volume.get("name")
        sources = [volume, *map(mapping_of, list_of(mapping_of(volume.get("projected")).get("sources")))]
        for source in sources:
            secret = mapping_of(source.get("secret"))
            title = secret.get("secretName") or secret.get("name")
            if title and title not in own:
                yield f"volume {name} of Secret {title}"
            if source.get("hostPath"):
                yield f"volume {name} is a folder of the node"
        if str(name).startswith("kube-api-access-"):
            yield f"volume {name} has a token for the cluster's API"


def _in_commands(workload: PodWorkload, known: Collection[str]) -> Iterator[str]:
    for container in workload.containers:
        for word in [*list_of(container.get("command")), *list_of(container.get("args"))]:
            yield from (f"command of container {container.get('name')}: {kind}" for kind in _kinds(str(word), known))


def _kinds(text: str, known: Collection[str]) -> Iterator[str]:
    for kind, pattern in _SECRET_VALUES:
        if pattern.search(text):
            yield kind
    if any(len(secret) >= _MIN_KNOWN and secret in text for secret in known):
        yield "a secret of the environment or the spec"


def _is_secret(name: str, value: str) -> bool:
    text = value.strip()
    return bool(_SECRET_NAME.search(name) and text.lower() not in _NO_SECRET and not _REFERENCE.fullmatch(text))


def _settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a JSON, YAML or properties file."""
    try:
        document: Any = json.loads(text)
    except ValueError:
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError:
            document = None
    if isinstance(document, dict | list):
        yield from _leaves("", cast(object, document))
        return
    for line in text.splitlines():
        name, value = [*re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1), ""][:2]
        yield name, value


def _leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in cast(Mapping[object, object], value).items():
            yield from _leaves(str(key), part)
    elif isinstance(value, list):
        for part in cast(Iterable[object], value):
            yield from _leaves(name, part)
    elif isinstance(value, str):
        yield name, value
