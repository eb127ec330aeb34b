"""Find secrets in the environment, the mounts and the configuration files of pods."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, cast

import yaml

from lakewright.validation.documents import as_list, as_mapping
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
_MIN_SECRET_LENGTH = 6
"""Shorter secrets are not searched for: they occur by chance."""


def find_pod_secrets(
    workload: PodWorkload, own_secrets: Collection[str], known_secrets: Collection[str] = ()
) -> list[str]:
    """Return descriptions of the secrets in a pod's environment and mounts, without the secrets.

    Args:
        workload: The pod.
        own_secrets: Names of the Secrets that the pod needs itself: the credential of its identity, its server's key.
        known_secrets: Secrets that must occur nowhere.
    """
    return [
        *_find_in_environment(workload, own_secrets, known_secrets),
        *_find_in_mounts(workload, own_secrets),
        *_find_in_commands(workload, known_secrets),
    ]


def find_config_map_secrets(manifest: Mapping[str, Any], known_secrets: Collection[str] = ()) -> list[str]:
    """Return descriptions of the secrets in a ConfigMap, without the secrets."""
    findings: list[str] = []
    for key, value in as_mapping(manifest.get("data")).items():
        text = str(value)
        findings += [f"{key}: {kind}" for kind in _list_secret_kinds(text, known_secrets)]
        findings += [
            f"{key}: a value of `{name}`" for name, setting in _parse_settings(text) if _is_secret(name, setting)
        ]
    return list(dict.fromkeys(findings))


def _find_in_environment(
    workload: PodWorkload, own_secrets: Collection[str], known_secrets: Collection[str]
) -> Iterator[str]:
    for container in workload.containers:
        for variable in map(as_mapping, as_list(container.get("env"))):
            name, value = str(variable.get("name")), variable.get("value")
            reference = as_mapping(as_mapping(variable.get("valueFrom")).get("secretKeyRef"))
            if reference and reference.get("name") not in own_secrets:
                yield f"variable {name} from Secret {reference.get('name')}"
            if isinstance(value, str):
                yield from (f"variable {name}: {kind}" for kind in _list_secret_kinds(value, known_secrets))
                if _is_secret(name, value):
                    yield f"variable {name} has a value"
        for source in map(as_mapping, as_list(container.get("envFrom"))):
            secret = as_mapping(source.get("secretRef")).get("name")
            if secret and secret not in own_secrets:
                yield f"all variables of Secret {secret}"


def _find_in_mounts(workload: PodWorkload, own_secrets: Collection[str]) -> Iterator[str]:
    for volume in map(as_mapping, as_list(workload.spec.get("volumes"))):
        name = volume.get("name")
        sources = [volume, *map(as_mapping, as_list(as_mapping(volume.get("projected")).get("sources")))]
        for source in sources:
            secret = as_mapping(source.get("secret"))
            title = secret.get("secretName") or secret.get("name")
            if title and title not in own_secrets:
                yield f"volume {name} of Secret {title}"
            if source.get("hostPath"):
                yield f"volume {name} is a folder of the node"
        if str(name).startswith("kube-api-access-"):
            yield f"volume {name} has a token for the cluster's API"


def _find_in_commands(workload: PodWorkload, known_secrets: Collection[str]) -> Iterator[str]:
    for container in workload.containers:
        for word in [*as_list(container.get("command")), *as_list(container.get("args"))]:
            yield from (
                f"command of container {container.get('name')}: {kind}"
                for kind in _list_secret_kinds(str(word), known_secrets)
            )


def _list_secret_kinds(text: str, known_secrets: Collection[str]) -> Iterator[str]:
    for kind, pattern in _SECRET_VALUES:
        if pattern.search(text):
            yield kind
    if any(len(secret) >= _MIN_SECRET_LENGTH and secret in text for secret in known_secrets):
        yield "a secret of the environment or the spec"


def _is_secret(name: str, value: str) -> bool:
    text = value.strip()
    return bool(_SECRET_NAME.search(name) and text.lower() not in _NO_SECRET and not _REFERENCE.fullmatch(text))


def _parse_settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a JSON, YAML or properties file."""
    try:
        document: Any = json.loads(text)
    except ValueError:
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError:
            document = None
    if isinstance(document, dict | list):
        yield from _walk_leaves("", cast(object, document))
        return
    for line in text.splitlines():
        name, value = [*re.split(r"\s*[=:\s]\s*", line.strip(), maxsplit=1), ""][:2]
        yield name, value


def _walk_leaves(name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, part in cast(Mapping[object, object], value).items():
            yield from _walk_leaves(str(key), part)
    elif isinstance(value, list):
        for part in cast(Iterable[object], value):
            yield from _walk_leaves(name, part)
    elif isinstance(value, str):
        yield name, value
