"""The jars that Spark needs: fetched once by Spark's own Ivy, compared with their SHA-256, then used by their paths."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import JarsChangedError, JarsMissingError
from lakewright_spark.session import own_jar, storage_jars
from lakewright_spark.session.jar_download import download

VERSION = "1.12.0"
"""Version of Iceberg."""

PACKAGES = (
    f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{VERSION}",
    f"org.apache.iceberg:iceberg-aws-bundle:{VERSION}",
)
"""Maven coordinates. The runtime is tied to Spark's minor version, so the two change together."""

DRIVERS: Mapping[str, str] = {
    "postgresql": "org.postgresql:postgresql:42.7.8",
    "sqlite": "org.xerial:sqlite-jdbc:3.50.3.0",
}
"""Drivers of the databases that a `jdbc` catalog may be in, by the scheme of its address."""


SHA256: Mapping[str, str] = {
    "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0": (
        "3123c3798af642dd537230923548e013ef41cc28b6626e5225808cf5670a0f82"
    ),
    "org.apache.iceberg:iceberg-aws-bundle:1.12.0": "dd7e49ffa4ac9b215bed846581991259e3aec9bb2fa08d6cec029c46cd66d957",
    "org.postgresql:postgresql:42.7.8": "2a32a9dcbc42d67a50ad3a0de5efd102c8d2be46720045f2cbd6689f160ab7c7",
    own_jar.COMPILER: "01f5a92ac19bb2b3bf85e295a68f2c73c264369109158b566ce9b490af982948",
    "org.xerial:sqlite-jdbc:3.50.3.0": "a3f53a2aa15ae9425a9e793bbe9c8e5288febeb4b65ef5c1a4e80d4c2045cf08",
    **storage_jars.SHA256,
}
"""SHA-256 of each jar. A new version needs a new digest."""

DRIVER_CLASS_PATH = "spark.driver.extraClassPath"
"""Property of Spark with the files that the driver's JVM has on its class path."""
_CLASS_PATHS = (DRIVER_CLASS_PATH, "spark.jars", "spark.jars.packages")

_CHECKED = "lakewright-checked.json"
"""File next to the jars with size and time of each verified jar, since hashing takes half a second."""


def ivy_home() -> Path:
    """Return the folder of Ivy's downloads: $LAKEWRIGHT_IVY, else the default folder of Spark 4.1."""
    return Path(os.environ.get("LAKEWRIGHT_IVY") or Path.home() / ".ivy2.5.2")


def jar_paths(packages: Sequence[str] = PACKAGES) -> list[Path]:
    """Return the paths of the jars in Ivy's folder, whether they exist or not."""
    return [
        ivy_home() / "jars" / f"{'_'.join(package.split(':')[:2])}-{package.split(':')[2]}.jar" for package in packages
    ]


def list_packages(config: CatalogConfig, *sources: Mapping[str, str]) -> list[str]:
    """Return the packages of a session: Iceberg, the driver of a database, and the SDKs of storage services.

    Args:
        config: The warehouses that a session uses.
        sources: Properties of Spark. A service whose bundle a class path names needs no other jars.
    """
    class_paths = ",".join(source.get(name, "") for source in sources for name in _CLASS_PATHS)
    driver = [DRIVERS[urlsplit(config.uri).scheme]] if config.kind == "jdbc" else []
    services = {warehouse.storage for warehouse in config.warehouses}
    sdks = [
        packages
        for service, packages in storage_jars.PACKAGES.items()
        if service in services and storage_jars.BUNDLES[service] not in class_paths
    ]
    return [*PACKAGES, *driver, *chain.from_iterable(sdks)]


def present(packages: Sequence[str] = PACKAGES) -> bool:
    """Return whether all jars exist."""
    return all(path.is_file() for path in jar_paths(packages))


def spark_properties(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the properties that make Spark load the jars. Missing jars are downloaded; each SHA-256 is compared.

    Spark never downloads the jars itself: it would load unchecked jars with their dependencies.
    """
    return {"spark.jars": ",".join(str(path) for path in fetch(packages))}


def driver_properties(packages: Sequence[str] = PACKAGES) -> dict[str, str]:
    """Return the properties that make a JVM on this machine load the jars, which `spark_properties` would copy.

    Spark copies `spark.jars` at each start of an application, 130 MB, and reads their classes without Java's
    class-data sharing.
    """
    return {DRIVER_CLASS_PATH: os.pathsep.join(str(path) for path in fetch(packages))}


def own() -> Path:
    """Return the jar of this package's Java sources, compiled unless it exists.

    Raises:
        JarsMissingError: The compiler could not be downloaded, or failed.
        JarsChangedError: The compiler or a jar of Iceberg has another content.
    """
    jar = own_jar.locate_jar(ivy_home() / "jars")
    if not jar.is_file():
        own_jar.build(jar, compiler=fetch([own_jar.COMPILER])[0], classpath=fetch(PACKAGES))
    return jar


def check(packages: Sequence[str] = PACKAGES) -> None:
    """Compare existing jars with their SHA-256. Raises JarsChangedError.

    A jar that was compared before and still has the same size and time is not read again.
    """
    checked = _read_checked()
    for package, path in zip(packages, jar_paths(packages), strict=True):
        state = path.stat()
        fingerprint = [SHA256.get(package), state.st_size, state.st_mtime_ns]
        if checked.get(path.name) == fingerprint:
            continue
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        if digest != SHA256.get(package):
            raise JarsChangedError(
                f"expected SHA-256 {SHA256.get(package, 'of a jar that is known')} of {path}, found {digest}. Delete "
                "the file and run `lakewright-spark jars`; if it returns, do not trust its source."
            )
        checked[path.name] = fingerprint
        _record(checked)


def _read_checked() -> dict[str, list[str | int | None]]:
    try:
        document = json.loads((ivy_home() / "jars" / _CHECKED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return cast("dict[str, list[str | int | None]]", document) if isinstance(document, dict) else {}


def _record(checked: dict[str, list[str | int | None]]) -> None:
    with contextlib.suppress(OSError):  # a folder that cannot be written to is compared again each time
        (ivy_home() / "jars" / _CHECKED).write_text(json.dumps(checked), encoding="utf-8")


def fetch(packages: Sequence[str] = PACKAGES) -> list[Path]:
    """Download missing jars, and compare all jars with their SHA-256 before they are loaded.

    Raises JarsMissingError if a download fails, and JarsChangedError if a jar has another content.
    """
    if not present(packages):
        written = download(packages, ivy_home())
        if not present(packages):
            last = "\n".join(written.strip().splitlines()[-15:])
            raise JarsMissingError(
                f"expected {', '.join(packages)} under {ivy_home()}, which Spark's Ivy did not fetch. Run"
                " `lakewright-spark jars` (for Azure and Google with `--storage`) where Maven's registry is reachable,"
                f" or build the image with these jars. Ivy wrote:\n{last}"
            )
    check(packages)
    return jar_paths(packages)
