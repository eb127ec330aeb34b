"""Download jars with Spark's Ivy, in a JVM that has no session and loads none of them.

Run as a program with two arguments: Maven coordinates, separated by commas, and the folder that Ivy keeps jars in.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.java_gateway import launch_gateway  # pyright: ignore[reportUnknownVariableType]

_WITH_DEPENDENCIES = False
"""Dependencies are left out, since their digests are not known."""
_PASSED_ON = frozenset(
    {
        *("path", "home", "tmpdir", "lang", "lc_all", "pythonpath"),
        *("java_home", "java_tool_options", "jdk_java_options", "spark_home", "spark_conf_dir", "spark_submit_opts"),
        *("http_proxy", "https_proxy", "no_proxy", "all_proxy", "default_artifact_repository"),
    }
)
"""Variables, in small letters, that name programs, proxies or where jars come from."""


def download_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that a download needs; credentials of the caller are not among them."""
    return {name: value for name, value in environ.items() if name.lower() in _PASSED_ON}


def download(packages: Sequence[str], home: Path, environ: Mapping[str, str] = os.environ) -> str:
    """Download jars without their dependencies, in a separate process with a small environment and its own folder.

    Settings of Ivy, repositories and proxies come from `spark-defaults.conf`.

    Args:
        packages: Maven coordinates.
        home: The folder that Ivy keeps jars in.
        environ: The variables of the caller.

    Returns:
        The standard error of the process, with the reason of each failed download.
    """
    command = [sys.executable, "-m", "lakewright_spark.session.jar_download", ",".join(packages), str(home.absolute())]
    with tempfile.TemporaryDirectory(prefix="lakewright-jars-") as folder:
        run = subprocess.run(
            command, cwd=folder, env=download_environment(environ), capture_output=True, text=True, check=False
        )
    return run.stderr


def main(packages: str, home: str) -> None:
    """Start a JVM without a session, and have its Ivy put the jars into the folder `jars` of `home`."""
    jvm: Any = launch_gateway().jvm
    setting = jvm.java.lang.System.getProperty
    try:
        jvm.org.apache.spark.util.DependencyUtils.resolveMavenDependencies(
            _WITH_DEPENDENCIES,
            "",
            packages,
            setting("spark.jars.repositories"),
            home,
            jvm.scala.Option.apply(setting("spark.jars.ivySettings")),
        )
    except Py4JJavaError as error:
        raise SystemExit(error.java_exception.getMessage()) from None


if __name__ == "__main__":
    main(*sys.argv[1:])
