"""Namespaces that known applications write to, for `namespaces: {preset: NAME}` of a warehouse."""

from collections.abc import Mapping, Sequence

PRESETS: Mapping[str, tuple[str, ...]] = {
    "texera": (
        "operator-port-result",
        "operator-console-messages",
        "workflow-runtime-statistics",
        "operator-port-state",
    ),
}
"""Namespaces by application, under the names that it uses by default."""


def match_preset(paths: Sequence[str]) -> str | None:
    """Return the preset whose namespaces are all among the paths."""
    return next((name for name, preset in PRESETS.items() if set(preset) <= set(paths)), None)
