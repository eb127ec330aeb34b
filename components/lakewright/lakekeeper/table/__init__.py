"""The Table resource."""

from typing import TYPE_CHECKING

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        from lakewright.lakekeeper.provider.former_paths import former_provider  # noqa: PLC0415 - needed for old state only

        return former_provider(__name__, name)
