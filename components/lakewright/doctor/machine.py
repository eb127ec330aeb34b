"""Check the programs on the machine: Python, the Pulumi CLI and its plugins, Java, Iceberg's jars."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

from lakewright_spark.session import jars

from lakewright.doctor.finding import Finding
from lakewright.project_files.plugins import find_missing_plugins

OLDEST_JAVA = 17
"""Spark 4.1 runs on Java 17 and later."""
TIMEOUT = 20
"""Seconds to wait for a program to print its version."""
_JAVA_VERSION = re.compile(r'\S+ version "(\d+)')


def check_machine() -> list[Finding]:
    """Check the machine. Changes nothing and uses no network."""
    return [check_python(), check_pulumi_cli(), *check_plugins(), check_java(), check_iceberg_jars()]


def check_python() -> Finding:
    """Return the version. It is never too old: pip refuses to install this package there."""
    return Finding("Python", "ok", ".".join(str(part) for part in sys.version_info[:3]))


def check_pulumi_cli() -> Finding:
    """Check for the Pulumi CLI."""
    if (path := shutil.which("pulumi")) is None:
        return Finding("Pulumi CLI", "optional", "not on the PATH", "install it; until then the embedded engine runs")
    lines = _read_lines([path, "version"])
    return Finding("Pulumi CLI", "ok", f"{lines[0] if lines else 'version unknown'} at {path}")


def check_plugins() -> list[Finding]:
    """Check for the plugins of the providers `aws` and `kubernetes`."""
    absent = find_missing_plugins({"aws", "kubernetes"})
    fix = "`pulumi plugin install resource {}`; until then the embedded engine runs, against a sandbox only"
    return [
        Finding(f"Pulumi plugin {name}", "optional", "not installed", fix.format(name))
        if name in absent
        else Finding(f"Pulumi plugin {name}", "ok", "installed")
        for name in ("aws", "kubernetes")
    ]


def check_java() -> Finding:
    """Check for a Java that Spark runs on."""
    fix = f"install Java {OLDEST_JAVA} or later, such as Debian's `openjdk-{OLDEST_JAVA}-jre-headless`"
    if (path := shutil.which("java")) is None:
        return Finding("Java", "missing", "not on the PATH", fix)
    # Java first prints the options of JAVA_TOOL_OPTIONS and _JAVA_OPTIONS, a line each.
    lines = _read_lines([path, "-version"])
    version = next(filter(None, map(_JAVA_VERSION.match, lines)), None)
    if version is None:
        return Finding("Java", "missing", lines[0] if lines else f"{path} does not print its version", fix)
    if int(version[1]) < OLDEST_JAVA:
        return Finding("Java", "missing", version.string, fix)
    return Finding("Java", "ok", version.string)


def check_iceberg_jars() -> Finding:
    """Check for Iceberg's jars in the Ivy cache."""
    if jars.present():
        return Finding("Iceberg jars", "ok", f"under {jars.ivy_home()}")
    return Finding("Iceberg jars", "missing", f"not under {jars.ivy_home()}", "`lakewright-spark jars` fetches them")


def _read_lines(command: list[str]) -> list[str]:
    """Return the lines that a program prints on both streams; none if it fails."""
    try:
        run = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return (run.stdout + run.stderr).strip().splitlines()
