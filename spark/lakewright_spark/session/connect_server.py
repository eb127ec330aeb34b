"""A Spark Connect server with a tenant's warehouses as named catalogs. Secrets remain in their files."""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import pyspark

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.errors import ConfigMissingError, IdentityError
from lakewright_spark.session import jars
from lakewright_spark.session.builder import (
    ALWAYS,
    DRIVER_JVM_OPTIONS,
    ONE_MACHINE,
    join_class_paths,
    trust_options,
)
from lakewright_spark.session.cluster import driver_memory
from lakewright_spark.session.own_jar import CONNECT_SERVER
from lakewright_spark.session.secrets import split_secrets

CERTIFICATE, KEY = "tls.crt", "tls.key"
"""Names of the files, as Kubernetes and cert-manager name them in Secrets of type kubernetes.io/tls."""

SHORTEST_TOKEN = 16
"""Characters. Every holder of the token may run code in the unit."""

_HEADER = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----")
_PLAIN_KEY = "PRIVATE KEY"
_ESCAPES = str.maketrans({"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"})


@dataclass(frozen=True)
class ConnectServer:
    """The server's settings."""

    config: CatalogConfig
    token_file: Path
    tls: Path | None = None
    port: int = 15002
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    """Spark properties, which override the properties of this class. Class path and JVM options add to its own."""

    def replace_process(self) -> NoReturn:
        """Check the settings, and replace this process by the server, which ends at SIGTERM.

        Raises:
            IdentityError: The token or the credential for the catalog is missing.
            ConfigMissingError: The certificate or a property is missing or invalid.
        """
        self.check()
        folder = Path(tempfile.mkdtemp(prefix="lakewright-connect-"))
        file = folder / "spark.properties"
        file.write_text(format_properties(self.spark_properties(folder)), encoding="utf-8")
        home = Path(pyspark.__file__).parent
        # Spark creates folders in the working directory.
        os.chdir(folder)
        arguments = [str(self.token_file.absolute()), str(self.port), *([str(self.tls.absolute())] if self.tls else [])]
        command = [str(home / "bin" / "spark-submit"), "--properties-file", str(file), "--class", CONNECT_SERVER]
        sys.stdout.flush()
        sys.stderr.flush()
        os.execve(command[0], [*command, str(jars.own()), *arguments], self._environment(home))  # noqa: S606

    def check(self) -> None:
        """Raise IdentityError or ConfigMissingError if the server could not start or serve."""
        token = _read(self.token_file, "with the token of clients").strip()
        if len(token) < SHORTEST_TOKEN:
            raise IdentityError(
                f"{self.token_file}: expected a token of at least {SHORTEST_TOKEN} characters, found {len(token)}"
            )
        self.config.auth.secret_options()
        if self.tls:
            _check_pem(self.tls / CERTIFICATE, "CERTIFICATE")
            _check_pem(self.tls / KEY, _PLAIN_KEY)
        if secret := sorted(split_secrets(self.properties)[1]):
            raise ConfigMissingError(f"--conf: expected properties without secrets, found {', '.join(secret)}")

    def spark_properties(self, folder: Path) -> dict[str, str]:
        """Return the server's properties. Spark keeps its own tables in `folder`.

        Raises:
            ConfigMissingError: Spark cannot read the credentials of this configuration itself.
        """
        try:
            catalogs = self.config.spark_properties_with_references()
        except ValueError as error:
            raise ConfigMissingError(f"catalog configuration of tenant {self.config.tenant}: {error}") from None
        memory = driver_memory({})
        properties = {
            **ALWAYS,
            **ONE_MACHINE,
            **({"spark.driver.memory": memory} if memory else {}),
            **catalogs,
            **jars.driver_properties(jars.list_packages(self.config, self.properties)),
            "spark.app.name": f"lakewright-{self.config.tenant}",
            "spark.sql.warehouse.dir": (folder / "spark-warehouse").as_uri(),
            **self._address(),
        }
        joined = join_class_paths(properties, self.properties)
        if trust := trust_options(self.config, local=True):
            joined[DRIVER_JVM_OPTIONS] = f"{self.properties.get(DRIVER_JVM_OPTIONS, '')} {trust}".strip()
        return {**properties, **self.properties, **joined}

    def _address(self) -> dict[str, str]:
        if self.tls is None:
            return {"spark.connect.grpc.binding.port": str(self.port)}
        # Spark's own port has no TLS. The server with TLS is `lakewright.spark.ConnectServer`.
        return {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": "0"}

    def _environment(self, home: Path) -> dict[str, str]:
        # Python of the clients' functions is this Python.
        return {**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable}


def format_properties(properties: Mapping[str, str]) -> str:
    """Return the text of a file that Java's `Properties.load` reads as these properties."""
    return "".join(f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in properties.items())


def _escape_key(key: str) -> str:
    return re.sub("[ :=#!]", r"\\\g<0>", key.translate(_ESCAPES))


def _escape_value(value: str) -> str:
    return re.sub("^ ", r"\\ ", value.translate(_ESCAPES))


def _check_pem(file: Path, expected_header: str) -> None:
    headers = _HEADER.findall(_read(file, "of TLS"))
    if expected_header not in headers:
        hint = ""
        if expected_header == _PLAIN_KEY and any(name.endswith(expected_header) for name in headers):
            hint = ". Convert it with `openssl pkcs8 -topk8 -nocrypt`; cert-manager makes it with `encoding: PKCS8`"
        raise ConfigMissingError(
            f"{file}: expected a PEM file with BEGIN {expected_header}, found {', '.join(headers) or 'no PEM'}{hint}"
        )


def _read(file: Path, purpose: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IdentityError(f"{file}: expected a readable file {purpose} ({type(error).__name__})") from None
