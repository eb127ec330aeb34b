"""Images of pods: by digest, as the image of a tag may change; by tag only in trials."""

from __future__ import annotations

import re
from collections.abc import Mapping

from lakewright.spec.computing_unit import Runtime

NOT_PULLABLE = "images.invalid/"
"""Registry that cannot exist (RFC 6761)."""

TRIAL_IMAGES: Mapping[Runtime, str] = {
    "spark": f"{NOT_PULLABLE}lakewright-spark:build-it-with-make-images",
    # Texera publishes no suitable image: a platform builds its own. Manifests of a trial are complete with this name.
    "texera": f"{NOT_PULLABLE}texera-workflow-execution-coordinator:unset",
}
"""Names in the manifests of trials that name no image. No such image exists, so their pods do not start."""

_BY_DIGEST = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


def find_mistake(image: str | None, *, trial: bool) -> str | None:
    """Return why an image cannot be used; None if it can."""
    if image is None:
        return "required: neither the spec nor `kubernetes.images` of the environment names an image"
    if trial or _BY_DIGEST.fullmatch(image):
        return None
    return (
        f"expected an image by digest, `NAME@sha256:...`, found `{image}`, whose content may change. Name the digest,"
        " or set `kubernetes.trial: true` in the environment of a trial"
    )
