"""Format `json`: the catalog configuration as it is, for `LAKEWRIGHT_CATALOG_FILE`."""

from __future__ import annotations

from lakewright.config_formats.config_format import ConfigFormat

FORMAT = ConfigFormat(lambda request: {"catalog.json": request.config.to_json()}, comment="")
