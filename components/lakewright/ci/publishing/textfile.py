"""Gauges in a file for node_exporter's textfile collector."""

from __future__ import annotations

from pathlib import Path

from lakewright.ci.errors import PublishError, SettingError
from lakewright.ci.publishing.check import DriftCheck
from lakewright.ci.publishing.gauges import make_gauges, parse_last_successes


def write_textfile(check: DriftCheck, file: Path) -> None:
    """Write the gauges to a file, which is replaced at once, so that no reader sees a part of it.

    Raises:
        SettingError: The collector would not read a file of that name.
        PublishError: The file cannot be written.
    """
    from prometheus_client import write_to_textfile  # noqa: PLC0415 - slow to load

    if file.suffix != ".prom":
        raise SettingError(f"textfile {file}: expected a name that ends in .prom, as node_exporter reads no other")
    try:
        earlier = file.read_text(encoding="utf-8") if file.exists() else ""
        write_to_textfile(str(file), make_gauges(check, parse_last_successes(earlier)))
    except (OSError, UnicodeDecodeError) as error:
        raise PublishError(f"textfile {file}: expected a file that can be written ({error})") from None
