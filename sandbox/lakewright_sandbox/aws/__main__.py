"""Serve S3, IAM, STS, KMS and the event history: `python -m lakewright_sandbox.aws --port P --credentials-file F`."""

import argparse
from pathlib import Path

from lakewright_sandbox.aws.authorizing_proxy import AuthorizingProxy
from lakewright_sandbox.aws.cloudtrail import Trail
from lakewright_sandbox.aws.identities import create_initial_identities
from lakewright_sandbox.aws.moto_app import create_app
from lakewright_sandbox.aws.server import create_server, require_loopback
from lakewright_sandbox.errors import CredentialsFileError
from lakewright_sandbox.runtime.credentials import load_or_create
from lakewright_sandbox.runtime.garbage import exclude_imported_objects


def main() -> None:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m lakewright_sandbox.aws", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--host", default="127.0.0.1", help="a loopback address")
    parser.add_argument(
        "--credentials-file", type=Path, required=True, help="created with random keys if it is missing"
    )
    parser.add_argument("--trail", type=Path, help="a file for records in CloudTrail's format, one per line")
    arguments = parser.parse_args()
    exclude_imported_objects()
    try:
        require_loopback(arguments.host)
        create_initial_identities(load_or_create(arguments.credentials_file))
    except (ValueError, CredentialsFileError) as error:
        parser.error(str(error))
    create_server(AuthorizingProxy(create_app(), trail=Trail(arguments.trail)), arguments.host, arguments.port).run()


if __name__ == "__main__":
    main()
