"""Namespaces that known applications write to, for `namespaces: {preset: NAME}` of a warehouse."""

from collections.abc import Mapping

PRESETS: Mapping[str, tuple[str, ...]] = {
    "texera": (
        "operator-port-result",
        "operator-console-messages",
        "workflow-runtime-statistics",
        "operator-port-state",
    ),
}
"""Namespaces by application, under the names that it uses by default."""
