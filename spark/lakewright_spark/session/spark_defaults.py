"""The user's own defaults of Spark, as spark-submit reads them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_ENTRY = re.compile(r"([^\s=:]+)(?:\s*[=:]\s*|\s+)(.*)")


def spark_defaults(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return what `spark-defaults.conf` in $SPARK_CONF_DIR, else in $SPARK_HOME/conf, sets; none without a file."""
    if folder := environ.get("SPARK_CONF_DIR"):
        path = Path(folder)
    elif home := environ.get("SPARK_HOME"):
        path = Path(home) / "conf"
    else:
        return {}
    try:
        lines = (path / "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    entries = (_ENTRY.fullmatch(line.strip()) for line in lines if line.strip() and line.strip()[0] not in "#!")
    return {entry[1]: entry[2].strip() for entry in entries if entry}
