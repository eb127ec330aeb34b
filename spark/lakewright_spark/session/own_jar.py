"""The jar of this package's Java sources: compiled on first use, and stored next to the other jars.

The Eclipse compiler runs on a Java runtime, so no JDK is needed, and every machine compiles with the same version.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

from lakewright_spark.errors import JarsMissingError

COMPILER = "org.eclipse.jdt:ecj:3.39.0"
SOURCES = Path(__file__).parent.parent / "java"
CONNECT_SERVER = "lakewright.spark.ConnectServer"

_JAVA_VERSION = "17"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Time of all entries, so that equal classes make an equal jar."""


def locate_jar(folder: Path) -> Path:
    """Return the jar's path in the folder of jars, whether it exists or not."""
    digest = hashlib.sha256(f"{COMPILER} {_JAVA_VERSION}".encode())
    for source in _sources():
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return folder / f"lakewright-spark-{digest.hexdigest()[:16]}.jar"


def build(jar: Path, compiler: Path, classpath: Sequence[Path]) -> None:
    """Compile the sources into a jar. The jar appears at its path when it is complete.

    Args:
        jar: Path of the new jar.
        compiler: The Eclipse compiler's jar, whose digest has been checked.
        classpath: Jars of Iceberg. Spark's jars are added.

    Raises:
        JarsMissingError: The compiler failed.
    """
    spark = sorted((Path(pyspark.__file__).parent / "jars").glob("*.jar"))
    with tempfile.TemporaryDirectory(prefix="lakewright-java-") as folder:
        classes = Path(folder) / "classes"
        command = [shutil.which("java") or "java", "-jar", str(compiler), "-proc:none", "-nowarn"]
        command += ["-source", _JAVA_VERSION, "-target", _JAVA_VERSION, "-encoding", "UTF-8", "-d", str(classes)]
        command += ["-classpath", os.pathsep.join(str(path) for path in [*classpath, *spark])]
        command += [str(source) for source in _sources()]
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise JarsMissingError(f"{jar}: Java did not start ({error.strerror}): put Java 17 on the PATH") from None
        if run.returncode:
            last = "\n".join((run.stdout + run.stderr).strip().splitlines()[-15:])
            raise JarsMissingError(f"{jar}: expected the Java sources to compile, found:\n{last}")
        built_jar = Path(folder) / "made.jar"
        _write_jar(built_jar, classes)
        # Another file system is possible, so copy first: a move within the folder is atomic.
        partial = jar.with_name(f"{jar.name}.{os.getpid()}")
        shutil.copyfile(built_jar, partial)
        partial.replace(jar)


def _sources() -> list[Path]:
    return sorted(SOURCES.glob("*.java"))


def _write_jar(jar: Path, classes: Path) -> None:
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(classes.rglob("*.class")):
            entry = zipfile.ZipInfo(file.relative_to(classes).as_posix(), _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
