"""Environment variables for backends, with the names and meaning of the Pulumi CLI."""

from __future__ import annotations

import os
from dataclasses import dataclass

from lakewright_engine.model.errors import UnsupportedFeatureError

_NAMES = {
    "gzip": ("PULUMI_DIY_BACKEND_GZIP", "PULUMI_SELF_MANAGED_STATE_GZIP"),
    "zstd": ("PULUMI_DIY_BACKEND_ZSTD", "PULUMI_SELF_MANAGED_STATE_ZSTD"),
    "retain": ("PULUMI_DIY_BACKEND_RETAIN_CHECKPOINTS", "PULUMI_RETAIN_CHECKPOINTS"),
    "no_backups": ("PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS", "PULUMI_DISABLE_CHECKPOINT_BACKUPS"),
    "legacy": ("PULUMI_DIY_BACKEND_LEGACY_LAYOUT", "PULUMI_SELF_MANAGED_STATE_LEGACY_LAYOUT"),
}
_PARALLEL = "PULUMI_DIY_BACKEND_PARALLEL"
_DEFAULT_PARALLEL = 10


@dataclass(frozen=True)
class BackendSettings:
    """Settings with which a backend writes and reads states."""

    compresses: bool = False
    """States and history are compressed with gzip."""
    wants_zstd: bool = False
    """States would be compressed with zstd, which this engine cannot write."""
    retains_checkpoints: bool = False
    """Each save also writes a copy with a timestamp."""
    keeps_backups: bool = True
    """Each update also writes a copy to `backups/`."""
    uses_old_layout: bool = False
    """A new backend would have the layout without projects."""
    parallel: int = _DEFAULT_PARALLEL
    """The number of states that are read at once."""

    @classmethod
    def from_environment(cls) -> BackendSettings:
        """Read the settings."""
        text = os.environ.get(_PARALLEL, "")
        return cls(
            compresses=_is_set("gzip"),
            wants_zstd=_is_set("zstd"),
            retains_checkpoints=_is_set("retain"),
            keeps_backups=not _is_set("no_backups"),
            uses_old_layout=_is_set("legacy"),
            parallel=int(text) if text.isdecimal() and int(text) else _DEFAULT_PARALLEL,
        )

    @classmethod
    def read_for_write(cls) -> BackendSettings:
        """Read the settings before a write. Raise UnsupportedFeatureError if they request compression with zstd."""
        settings = cls.from_environment()
        if settings.wants_zstd:
            raise UnsupportedFeatureError(
                f"{_NAMES['zstd'][0]} is set, but the embedded engine cannot write states with zstd compression: "
                f"unset it, set {_NAMES['gzip'][0]} instead, or use --engine pulumi"
            )
        return settings


def _is_set(setting: str) -> bool:
    return any(os.environ.get(name, "").lower() in ("1", "true") for name in _NAMES[setting])
