"""Create a Java truststore from a PEM file, which Java cannot read itself, with the keytool of the Java runtime."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path, PurePath

from lakewright_spark.errors import ConfigMissingError

PASSWORD = "changeit"  # noqa: S105  # of every Java's own truststore; certificates are public
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def create_truststore(pem: Path) -> Path:
    """Return a truststore with Java's own authorities and the authorities of a PEM file.

    It is created once for each content of the file. Raises ConfigMissingError.
    """
    try:
        # Comments between certificates may have other characters.
        text = pem.read_text(encoding="ascii", errors="replace")
    except OSError as error:
        raise ConfigMissingError(
            f"ca_bundle {pem}: expected a PEM file that can be read ({type(error).__name__})"
        ) from None
    certificates = _CERTIFICATE.findall(text)
    if not certificates:
        raise ConfigMissingError(f"ca_bundle {pem}: expected a PEM file with certificates, found none")
    java = find_java_home()
    name = hashlib.sha256(f"{java}\n{text}".encode()).hexdigest()[:32]
    # Not in a folder that other users may write to: the writer of this file decides which servers the job trusts.
    store = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lakewright" / f"trust-{name}.p12"
    if not store.is_file():
        store.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(dir=store.parent) as folder:
            fresh = Path(folder) / "truststore"
            shutil.copyfile(java / "lib" / "security" / "cacerts", fresh)
            fresh.chmod(0o600)
            # keytool takes one certificate at a time, in a JVM of its own. A system's bundle has a hundred of Java's.
            java_authorities = set(map(_read_base64, _list_certificates(java, fresh)))
            for number, certificate in enumerate(certificates):
                if _read_base64(certificate) not in java_authorities:
                    _import(java, fresh, f"lakewright-{number}", certificate, pem)
            fresh.replace(store)
    return store


def java_options(store: PurePath) -> str:
    """Return the options with which a JVM uses the truststore."""
    return f"-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={PASSWORD}"


def _list_certificates(java: Path, store: Path) -> list[str]:
    """Return the certificates of a store in PEM; none if keytool cannot list them, so that all are imported."""
    command = [str(java / "bin" / "keytool"), "-list", "-rfc", "-keystore", str(store), "-storepass", PASSWORD]
    # Names of authorities may have other characters, in an encoding of Java's choice.
    run = subprocess.run(command, capture_output=True, encoding="ascii", errors="replace", check=False)
    return _CERTIFICATE.findall(run.stdout)


def _read_base64(certificate: str) -> str:
    """Return the text between the first and the last line of a certificate in PEM, without line ends."""
    return "".join(certificate.splitlines()[1:-1])


def _import(java: Path, store: Path, alias: str, certificate: str, pem: Path) -> None:
    command = [str(java / "bin" / "keytool"), "-importcert", "-noprompt", "-alias", alias]
    command += ["-keystore", str(store), "-storepass", PASSWORD]
    run = subprocess.run(command, input=certificate, capture_output=True, text=True, check=False)
    if run.returncode:
        message = (run.stdout + run.stderr).strip().splitlines()[-1:]
        raise ConfigMissingError(f"ca_bundle {pem}: Java's keytool does not take {alias}: {' '.join(message)}")


def find_java_home() -> Path:
    """Return the folder of the Java runtime: `JAVA_HOME`, else that of the `java` on the PATH.

    Raises:
        ConfigMissingError: There is no Java.
    """
    java = os.environ.get("JAVA_HOME") or shutil.which("java")
    if java is None:
        raise ConfigMissingError("ca_bundle: Java is not on the PATH, so no truststore can be made")
    home = Path(java).resolve()
    return home if home.is_dir() else home.parent.parent
