"""The MinIO server, built once from the Go module that `sandbox/minio` pins."""

import subprocess
from pathlib import Path

from lakewright_sandbox.runtime.errors import ProcessFailedError, SandboxOptionsError

_CHECKOUT = Path(__file__).parents[3]
_BUILD = _CHECKOUT / "scripts" / "go_program.sh"
_MODULE = _CHECKOUT / "sandbox" / "minio"


def minio_program() -> Path:
    """Return the MinIO server; build it if the user's cache has none, which takes minutes.

    Raises:
        SandboxOptionsError: This is no checkout of the repository, so there is nothing to build from.
        ProcessFailedError: The build failed; its output is on stderr.
    """
    if not _BUILD.is_file():
        raise SandboxOptionsError(
            "`--s3 minio` builds MinIO in a checkout of the repository; this is an installed package. Start a store,"
            " and name its address: `--s3 http://127.0.0.1:9000`."
        )
    build = subprocess.run([_BUILD, _MODULE, "github.com/minio/minio"], stdout=subprocess.PIPE, text=True, check=False)
    if build.returncode:
        raise ProcessFailedError("MinIO could not be built for the reason above. Put Go 1.24 or newer on the PATH.")
    return Path(build.stdout.strip())
