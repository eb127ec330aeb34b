"""Write `PACKAGE/sbom.cdx.json`: the SBOM (CycloneDX) of each package, with the versions of requirements.lock.

Addresses of package indexes are left out: a user's index may be another.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[1]
PACKAGES = ("components", "engine", "sandbox", "spark")
_OWN = ("lakewright", "lakewright-engine", "lakewright-spark")


_PINS = "*/*/assets/*/pins.json"
"""Files about the JavaScript libraries that a package contains."""


def main() -> None:
    """Write the SBOMs of all packages."""
    for package in PACKAGES:
        folder = REPOSITORY / package
        with tempfile.TemporaryDirectory() as scratch:
            requirements = Path(scratch, "requirements.txt")
            requirements.write_text(resolve(folder / "pyproject.toml"))
            document = describe(requirements, folder / "pyproject.toml")
        document = drop_index_addresses(document)
        document["components"] += [describe_included_library(pins) for pins in sorted(folder.glob(_PINS))]
        text = json.dumps(document, indent=1, sort_keys=True)
        (folder / "sbom.cdx.json").write_text(f"{text}\n")


def resolve(project: Path) -> str:
    """Return the requirements of a package, in the versions of requirements.lock."""
    options = ["--quiet", "--universal", "--python-version", "3.11", "--no-annotate", "--no-header"]
    own_packages = [word for name in _OWN for word in ("--no-emit-package", name)]
    command = [REPOSITORY / "scripts" / "uv.sh", "pip", "compile", *options, *own_packages]
    lock = REPOSITORY / "requirements.lock"
    return subprocess.run([*command, "-c", lock, project], capture_output=True, text=True, check=True).stdout


def describe(requirements: Path, project: Path) -> dict[str, Any]:
    """Return the CycloneDX document of a package."""
    options = ["--pyproject", project, "--mc-type", "library", "--output-reproducible", "--output-format", "JSON"]
    command = [Path(sys.executable).with_name("cyclonedx-py"), "requirements", requirements, *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def drop_index_addresses(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document without the addresses that only say where a package was found."""
    components = [
        {key: value for key, value in component.items() if key != "externalReferences"}
        for component in document["components"]
    ]
    metadata = {key: value for key, value in document["metadata"].items() if key != "tools"}
    return document | {"components": components, "metadata": metadata}


def describe_included_library(pins: Path) -> dict[str, Any]:
    """Return the entry of a JavaScript library whose files a package contains."""
    library = json.loads(pins.read_text())
    purl = f"pkg:npm/{library['name']}@{library['version']}"
    return {
        "bom-ref": purl,
        "licenses": [{"license": {"id": library["license"]}}],
        "name": library["name"],
        "purl": purl,
        "type": "library",
        "version": library["version"],
    }


if __name__ == "__main__":
    main()
