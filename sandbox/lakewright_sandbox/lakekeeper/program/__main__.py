"""Run the program of a Lakekeeper image: `python -m lakewright_sandbox.lakekeeper.program serve`."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import uvicorn
from starlette.types import ASGIApp

from lakewright_sandbox.errors import SandboxError
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.program.environment import Variables
from lakewright_sandbox.lakekeeper.program.events import ChangeEvents, NatsPublisher
from lakewright_sandbox.lakekeeper.program.migration import migrate, wait_for_database
from lakewright_sandbox.lakekeeper.program.openid_providers import connect_providers
from lakewright_sandbox.lakekeeper.program.permissions_server import PermissionChecks, PermissionsServer
from lakewright_sandbox.lakekeeper.protocol.versions import RELEASED, REPORTED

RELEASE_VARIABLE = "LAKEWRIGHT_STAND_IN_RELEASE"
"""Environment variable of the release to play, as an image would have it."""


def main() -> None:
    """Run one command; exit with 1 and a message if it fails."""
    parser = argparse.ArgumentParser(prog="lakekeeper", description="The sandbox's Lakekeeper as a released program")
    commands = parser.add_subparsers(dest="command", required=True)
    wait = commands.add_parser("wait-for-db", help="wait for the database")
    wait.add_argument("-d", "--check-db", action="store_true")
    wait.add_argument("-m", "--check-migrations", action="store_true")
    wait.add_argument("-r", "--retries", type=int, default=15)
    wait.add_argument("-b", "--backoff", type=int, default=2)
    for name in ("migrate", "serve", "version"):
        commands.add_parser(name)
    arguments = parser.parse_args()
    release = os.environ.get(RELEASE_VARIABLE, REPORTED[RELEASED])
    if arguments.command == "version":
        print(release)
        return
    try:
        _run(arguments, Variables(os.environ, release))
    except SandboxError as error:
        sys.exit(f"lakekeeper {arguments.command}: {error}")


def _run(arguments: argparse.Namespace, variables: Variables) -> None:
    url = variables.build_database_url("PG_HOST_W")
    if arguments.command == "wait-for-db":
        release = variables.release if arguments.check_migrations else None
        wait_for_database(url, release=release, retries=arguments.retries, backoff=arguments.backoff)
    elif arguments.command == "migrate":
        _find_permissions_server(variables)
        migrate(url, variables.release)
    else:
        _serve(variables)


def _serve(variables: Variables) -> None:
    permissions_server = _find_permissions_server(variables)
    if authorities := os.environ.get("SSL_CERT_FILE"):
        os.environ["AWS_CA_BUNDLE"] = authorities
    app: ASGIApp = create_app(connect_providers(variables.build_settings()))
    if address := variables.get("NATS_ADDRESS"):
        login = {"user": variables.get("NATS_USER"), "pass": variables.get("NATS_PASSWORD")}
        login["auth_token"] = variables.get("NATS_TOKEN")
        fields = {name: value for name, value in login.items() if value}
        app = ChangeEvents(app, NatsPublisher(address, variables.require("NATS_TOPIC"), fields))
    if permissions_server:
        app = PermissionChecks(app, permissions_server)
    metrics = ThreadingHTTPServer(
        (variables.get("BIND_IP") or "", variables.get_number("METRICS__PORT", 9000)), Metrics
    )
    threading.Thread(target=metrics.serve_forever, daemon=True).start()
    uvicorn.run(
        app,
        host=variables.get("BIND_IP") or "0.0.0.0",  # noqa: S104 - as the real server
        port=variables.get_number("LISTEN_PORT", 8181),
        log_level="warning",
        access_log=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=20,
    )


def _find_permissions_server(variables: Variables) -> PermissionsServer | None:
    """Return OpenFGA if it decides on permissions. Refuses to start without it, as the real server does."""
    if variables.get("AUTHZ_BACKEND") != "openfga":
        return None
    server = PermissionsServer(variables.require("OPENFGA__ENDPOINT"))
    server.require()
    return server


class Metrics(BaseHTTPRequestHandler):
    """Responds at /metrics."""

    def do_GET(self) -> None:
        """Report that the server runs."""
        body = b"# TYPE lakekeeper_stand_in gauge\nlakekeeper_stand_in 1\n"
        self.send_response(200 if self.path == "/metrics" else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""


if __name__ == "__main__":
    main()
