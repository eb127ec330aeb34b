"""100 projects with 2 roles each, against the Terraform provider and the Pulumi CLI with our provider."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.ground import Ground
from benchmarks.measure import Row, timed
from demo.stage import DemoError

VERBS = ("create", "no-op with refresh", "destroy")
TARGETS = {"create": 1.0, "no-op with refresh": 1.5, "destroy": 1.0}
TERRAFORM = {"create": 3.1, "no-op with refresh": 1.24, "destroy": 4.9}
"""Seconds recorded on another machine with 2 cores."""
PROVIDER = "terraform-provider-lakekeeper"


def measure(ground: Ground) -> list[Row]:
    config = {"endpoint": ground.sandbox["lakekeeper"]["endpoint"]}
    program = ground.program("projects_roles", config)
    where = ("--stack", "bench", "-C", str(program))
    noop = ("preview", "--refresh", "--expect-no-changes", *where)
    ours = {
        "create": timed(lambda: ground.lakewright("up", "--yes", *where)),
        "no-op with refresh": min(timed(lambda: ground.lakewright(*noop)) for _ in range(3)),
        "destroy": timed(lambda: ground.lakewright("destroy", "--yes", *where)),
    }
    reference, note = TERRAFORM, "all starts included; reference: Terraform, recorded on another machine"
    if shutil.which("terraform") and shutil.which(PROVIDER):
        reference, note = _terraform(program, config["endpoint"]), "all starts included; reference: Terraform here"
    rows = [
        Row(f"100 projects with 2 roles: {verb}", ours[verb], reference[verb], TARGETS[verb], note=note)
        for verb in VERBS
    ]
    if shutil.which("pulumi"):
        others = (ground.copy("naive_roles", config), ground.copy("nothing", {"count": "300"}))
        ours_seconds, theirs, alone = (_preview_on_the_cli(ground, one) for one in (program, *others))
        name = "100 projects with 2 roles: preview with refresh on the Pulumi CLI"
        note = (
            "all starts included; reference: a naive provider here; as many resources whose provider calls nobody: "
            f"{alone:.2f} s"
        )
        rows.append(Row(name, ours_seconds, theirs, 0.5, note=note))
    return rows


def _preview_on_the_cli(ground: Ground, program: Path) -> float:
    ground.pulumi(program, "stack", "init", "bench")
    plain = ("--stack", "bench", "--non-interactive")
    ground.pulumi(program, "up", "--yes", "--skip-preview", *plain)
    seconds = min(timed(lambda: ground.pulumi(program, "preview", "--refresh", *plain)) for _ in range(3))
    ground.pulumi(program, "destroy", "--yes", "--skip-preview", *plain)
    return seconds


def _terraform(program: Path, endpoint: str) -> dict[str, float]:
    settings = program / "terraformrc"
    built = str(Path(str(shutil.which(PROVIDER))).parent)
    settings.write_text(
        f'provider_installation {{ dev_overrides {{ "baptistegh/lakekeeper" = {json.dumps(built)} }} }}\n'
    )
    with _token_endpoint() as auth_url:
        mine = {"TF_CLI_CONFIG_FILE": str(settings), "TF_VAR_endpoint": endpoint, "TF_VAR_auth_url": auth_url}
        environment = os.environ | mine | {"CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1"}

        def terraform(*words: str) -> None:
            command = ["terraform", words[0], "-input=false", "-no-color", "-parallelism=16", *words[1:]]
            done = subprocess.run(command, cwd=program, env=environment, capture_output=True, text=True, check=False)
            if done.returncode:
                raise DemoError(f"`{' '.join(command)}` ended with {done.returncode}. {done.stderr[-2000:]}")

        return {
            "create": timed(lambda: terraform("apply", "-auto-approve")),
            "no-op with refresh": min(timed(lambda: terraform("plan", "-detailed-exitcode")) for _ in range(3)),
            "destroy": timed(lambda: terraform("destroy", "-auto-approve")),
        }


@contextmanager
def _token_endpoint() -> Iterator[str]:
    """Serve tokens: the Terraform provider requires one even if the server does not."""

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.dumps({"access_token": "bench", "token_type": "Bearer", "expires_in": 3600}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/token"
    finally:
        server.shutdown()
