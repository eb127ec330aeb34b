"""Types of the platform's settings."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from lakewright.credentials.references import FORMS, check_reference
from lakewright.kubernetes.network import find_mistake
from lakewright.names.types import normalize_endpoint

GENERATED = "generated"
"""Source of a secret that the stack mints once and keeps encrypted in its state."""
_IN_CLUSTER = re.compile(r"kubernetes:[a-z0-9]([a-z0-9.-]*[a-z0-9])?#[A-Za-z0-9._-]+")
_VERSION = re.compile(r"(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)")
_IMAGE = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")
_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_QUANTITY = re.compile(r"\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
_HOST = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")


def _check_secret_source(value: str) -> str:
    if value == GENERATED or _IN_CLUSTER.fullmatch(value):
        return value
    try:
        return check_reference(value)
    except ValueError:
        # The value may be the secret itself, so the message does not repeat it.
        raise ValueError(
            f"must be `{GENERATED}`, `kubernetes:SECRET#KEY` of the namespace, or a reference ({FORMS}),"
            " not the secret itself"
        ) from None


def _check_version(value: str) -> str:
    if not _VERSION.fullmatch(value):
        raise ValueError("a version looks like `0.13.3`")
    return value


def _check_label(value: str) -> str:
    if not _LABEL.fullmatch(value):
        raise ValueError("a name of Kubernetes has up to 63 lower-case letters, digits and `-`")
    return value


def _check_quantity(value: str) -> str:
    if not _QUANTITY.fullmatch(value):
        raise ValueError("a quantity looks like `500m`, `2` or `1Gi`")
    return value


def _check_host(value: str) -> str:
    if not _HOST.fullmatch(value):
        raise ValueError("a host is a DNS name or an address, without scheme, port and path")
    check_reachable(f"//{value}")
    return value


def _normalize_url(value: str) -> str:
    url = normalize_endpoint(value, keep_path=True).rstrip("/")
    check_reachable(url)
    return url


def check_reachable(url: str) -> None:
    """Raise ValueError for a URL that no NetworkPolicy of the platform allows."""
    if mistake := find_mistake(url):
        raise ValueError(mistake)


SecretSource = Annotated[str, AfterValidator(_check_secret_source)]
"""Source of a secret: `generated`, `kubernetes:SECRET#KEY`, or a reference."""
Version = Annotated[str, AfterValidator(_check_version)]
ObjectName = Annotated[str, AfterValidator(_check_label)]
ResourceQuantity = Annotated[str, AfterValidator(_check_quantity)]
HostName = Annotated[str, AfterValidator(_check_host)]
HttpUrl = Annotated[str, AfterValidator(_normalize_url)]
Port = Annotated[int, Field(ge=1, le=65535)]
Count = Annotated[int, Field(ge=1)]
Text = Annotated[str, Field(min_length=1)]
TextList = Annotated[list[Text], Field(min_length=1)]
IsoDuration = Annotated[str, Field(pattern=r"^PT(\d+H)?(\d+M)?(\d+S)?$", min_length=4)]
"""Duration such as `PT30M`."""
Interval = Annotated[str, Field(pattern=r"^\d+(ms|s)?$")]
"""Duration in seconds: `10`, `10s` or `500ms`."""


def parse_interval(interval: str) -> float:
    """Return the seconds of an Interval."""
    if interval.endswith("ms"):
        return int(interval.removesuffix("ms")) / 1000
    return int(interval.removesuffix("s"))


def find_image_mistake(image: str, *, trial: bool) -> str | None:
    """Return why an image cannot be used; None if it can."""
    if trial or _IMAGE.fullmatch(image):
        return None
    return (
        f"expected an image by digest, `NAME@sha256:...`, found `{image}`, whose content may change. Name the digest,"
        " or set `trial: true`"
    )


def is_minted(source: str) -> bool:
    """Return whether the stack mints the secret."""
    return source == GENERATED


def parse_cluster_secret(source: str) -> tuple[str, str] | None:
    """Return name and key of the Kubernetes Secret that a source names; None for other sources."""
    if not _IN_CLUSTER.fullmatch(source):
        return None
    name, _, key = source.removeprefix("kubernetes:").partition("#")
    return name, key
