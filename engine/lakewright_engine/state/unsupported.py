"""Refuse features of a stack that the Pulumi CLI supports and this engine does not, before anything is planned."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, cast

from lakewright_engine.model.errors import UnsupportedFeatureError, UnsupportedStateError
from lakewright_engine.model.resources import ResourceState

_FIELDS = {
    "refreshBeforeUpdate": "must be refreshed before each update",
    "viewOf": "is a view of another resource",
    "extensionRef": "comes from a package with an extension parameter",
    "snippetID": "comes from a snippet",
}
"""JSON key of a resource in the state -> the feature that it requires."""

_AUTONAMING = "pulumi:autonaming"


def refuse_unsupported_state(stack: str, resources: Iterable[ResourceState]) -> None:
    """Refuse a state in which a resource requires an unsupported feature.

    Raises:
        UnsupportedStateError: A resource requires such a feature.
    """
    for state in resources:
        for field, meaning in _FIELDS.items():
            if state.extra.get(field):
                raise UnsupportedStateError(
                    f"{state.urn} in the state of stack '{stack}' {meaning} ({field}), which the embedded engine does "
                    "not support: use the Pulumi CLI"
                )


def refuse_autonaming(config: Mapping[str, str]) -> None:
    """Refuse `pulumi:autonaming` in the configuration: resources would get other names than on the CLI.

    Args:
        config: Values by full key, objects as JSON text.

    Raises:
        UnsupportedFeatureError: The configuration changes how resources are named.
    """
    text = config.get(_AUTONAMING, "")
    if text and not _is_default(text):
        raise UnsupportedFeatureError(
            f"the configuration sets {_AUTONAMING}, which the embedded engine does not support: remove it, or use the "
            "Pulumi CLI"
        )


def _is_default(text: str) -> bool:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and cast("dict[str, Any]", value) in ({}, {"mode": "default"})
