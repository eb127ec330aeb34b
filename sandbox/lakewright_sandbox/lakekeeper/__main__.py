"""Run the server in the foreground: `python -m lakewright_sandbox.lakekeeper`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import get_args

import uvicorn

from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import DATABASE_VARIABLE, Settings
from lakewright_sandbox.lakekeeper.protocol.versions import RELEASED, Version
from lakewright_sandbox.runtime.garbage import exclude_imported_objects


def main() -> None:
    """Serve until SIGTERM or SIGINT; print warnings and errors alone."""
    parser = argparse.ArgumentParser(prog="lakewright_sandbox.lakekeeper", description="A sandbox Lakekeeper")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8181)
    parser.add_argument(
        "--database",
        default=os.environ.get(DATABASE_VARIABLE),
        help=f"SQLAlchemy URL, sqlite:///FILE or postgresql://...; by default ${DATABASE_VARIABLE}",
    )
    parser.add_argument("--aws-endpoint", help="AWS endpoint (S3 and STS) of profiles without one")
    parser.add_argument("--credentials-file", type=Path, help="AWS shared-credentials file of the system identity")
    parser.add_argument("--profile", default="lakekeeper", help="the system identity's profile in that file")
    parser.add_argument(
        "--system-identity",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="whether warehouses may use the server's own AWS identity",
    )
    parser.add_argument(
        "--version",
        choices=get_args(Version),
        default=RELEASED,
        help="the server version to emulate; by default the newest release",
    )
    parser.add_argument("--openid-provider-uri", help="an OpenID provider; every call then needs one of its tokens")
    parser.add_argument(
        "--openid-audience", action="append", default=[], help="an audience to accept; may be given more than once"
    )
    parser.add_argument(
        "--fault-switch", action="store_true", help="let tests on this machine inject faults, at /sandbox/v1/faults"
    )
    parser.add_argument(
        "--authz",
        choices=("allowall", "openfga"),
        default="allowall",
        help="whether grants are enforced as with OpenFGA, or every caller may do everything",
    )
    parser.add_argument("--audit-log", type=Path, help="a file for audit events, one JSON object per line")
    arguments = parser.parse_args()
    exclude_imported_objects()
    if not arguments.database:
        parser.error(f"set the database by --database or {DATABASE_VARIABLE}")
    settings = Settings(
        database=arguments.database,
        aws_endpoint=arguments.aws_endpoint,
        credentials_file=arguments.credentials_file,
        profile=arguments.profile,
        aws_system_identity=arguments.system_identity,
        version=arguments.version,
        openid_provider_uri=arguments.openid_provider_uri,
        openid_audiences=tuple(arguments.openid_audience),
        authorizer=arguments.authz,
        audit_log=arguments.audit_log,
    )
    app = create_app(settings)
    uvicorn.run(
        FaultSwitch(app) if arguments.fault_switch else app,
        host=arguments.host,
        port=arguments.port,
        log_level="warning",
        access_log=False,
        # Longer than clients keep an idle connection, so that none is closed while it is reused.
        timeout_keep_alive=60,
        timeout_graceful_shutdown=3,
    )


if __name__ == "__main__":
    main()
