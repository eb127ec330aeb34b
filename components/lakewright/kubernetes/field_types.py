"""Types of fields that Kubernetes limits: names of objects, keys, labels and environment variables."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?", re.ASCII)
_SECRET_VARIABLE = re.compile(
    r"PASSWORD|SECRET|TOKEN|JDBC|CREDENTIAL|ACCESS_?KEY|PRIVATE|_AUTH_|STORAGE_S3", re.IGNORECASE
)


def _check_label_key(value: str) -> str:
    if not _LABEL_KEY.fullmatch(value):
        raise ValueError("expected the key of a Kubernetes label, such as `app.kubernetes.io/name`")
    return value


def _check_label_value(value: str) -> str:
    if not _LABEL_VALUE.fullmatch(value):
        raise ValueError("expected the value of a Kubernetes label: up to 63 letters, digits, `-`, `_`, `.`")
    return value


def _check_public_variable(name: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise ValueError("expected the name of an environment variable")
    if _SECRET_VARIABLE.search(name):
        raise ValueError("expected no secret, database or S3 setting: programs of users read a unit's environment")
    return name


DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")]
"""Name of a namespace."""
ObjectName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$")]
"""Name of a ConfigMap, Secret or RuntimeClass."""
FileKey = Annotated[str, Field(pattern=r"^[-._a-zA-Z0-9]{1,253}$")]
"""Key of a ConfigMap or Secret."""
LabelKey = Annotated[str, AfterValidator(_check_label_key)]
LabelValue = Annotated[str, AfterValidator(_check_label_value)]
PublicVariable = Annotated[str, AfterValidator(_check_public_variable)]
