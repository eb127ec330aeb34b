"""nginx as a process, with a rendered configuration."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
NJS = Path("/usr/lib/nginx/modules/ngx_http_js_module.so")
MISSING_NJS = (
    "nginx is not installed (Debian: nginx-light)"
    if NGINX is None
    else "nginx has no module njs (Debian: libnginx-mod-http-js)"
    if not NJS.is_file()
    else None
)
"""Why nginx with njs cannot run here; None if it can."""
AS_ROOT = ["-g", "user root;"] if os.geteuid() == 0 else []
"""Arguments of a test that runs as root: otherwise the workers could not read the test's files."""


@contextmanager
def serve_nginx(config: Path, probe: str) -> Generator[None, None, None]:
    """Run nginx with a configuration until the block ends, once it responds at the URL `probe`."""
    folder = config.parent
    with (folder / "log").open("w") as log:
        command = [str(NGINX), "-p", str(folder), "-e", "/dev/stderr", *AS_ROOT, "-c", str(config)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until_it_responds(probe)
        yield
    finally:
        process.terminate()
        process.wait(10)


@retry(stop=stop_after_delay(20), wait=wait_fixed(0.05), retry=retry_if_exception_type(httpx.ConnectError))
def wait_until_it_responds(url: str) -> None:
    """Wait until something listens at a URL."""
    httpx.get(url)
