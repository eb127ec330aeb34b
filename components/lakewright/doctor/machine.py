"""What has to be installed on the machine: Python, the Pulumi CLI and its plugins, Java, Iceberg's jars."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from lakewright_spark.session import jars

from lakewright.doctor.finding import Finding
from lakewright.project_files.plugins import missing

OLDEST_JAVA = 17
"""Spark 4.1 runs on Java 17 and later."""
ANSWER_IN = 20
"""Seconds that a program has to tell its version."""


def look_at_machine() -> list[Finding]:
    """Every finding about this machine; nothing is changed and no network is used."""
    return [python(), pulumi_cli(), *pulumi_plugins(), java(), iceberg_jars()]


def python() -> Finding:
    """Always there: pip refuses to install this package on a Python that is too old."""
    return Finding("Python", "ok", ".".join(str(part) for part in sys.version_info[:3]))


def pulumi_cli() -> Finding:
    if (path := shutil.which("pulumi")) is None:
        return Finding("Pulumi CLI", "optional", "not on the PATH", "install it; until then the embedded engine runs")
    return Finding("Pulumi CLI", "ok", f"{_told([path, 'version']) or 'version unknown'} at {path}")


def pulumi_plugins() -> list[Finding]:
    absent = missing({"aws", "kubernetes"})
    mend = "`pulumi plugin install resource {}`; until then the embedded engine runs, towards a sandbox only"
    return [
        Finding(f"Pulumi plugin {name}", "optional", "not installed", mend.format(name))
        if name in absent
        else Finding(f"Pulumi plugin {name}", "ok", "installed")
        for name in ("aws", "kubernetes")
    ]


def java() -> Finding:
    mend = f"install Java {OLDEST_JAVA} or later, such as Debian's `openjdk-{OLDEST_JAVA}-jre-headless`"
    if (path := shutil.which("java")) is None:
        return Finding("Java", "missing", "not on the PATH", mend)
    told = _told([path, "-version"])
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < OLDEST_JAVA:
        return Finding("Java", "missing", told or f"{path} does not tell its version", mend)
    return Finding("Java", "ok", told)


def iceberg_jars() -> Finding:
    if jars.present():
        return Finding("Iceberg jars", "ok", f"under {jars.ivy_home()}")
    return Finding("Iceberg jars", "missing", f"not under {jars.ivy_home()}", "`lakewright-spark jars` fetches them")


def _told(command: list[str]) -> str:
    """The first line that a program prints, on either stream; nothing if it fails."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_IN, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    lines = (run.stdout + run.stderr).strip().splitlines()
    return lines[0] if lines else ""
