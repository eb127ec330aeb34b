"""`python -m lakewright_sandbox.providers aws|kubernetes [--port N]`: prints its port, then serves on loopback.

The embedded engine starts it with the address of a Unix socket; for the Pulumi CLI, choose a port and name it in
PULUMI_DEBUG_PROVIDERS=aws:PORT.
"""

from __future__ import annotations

import argparse
import sys

from lakewright_sandbox.providers.protocol.errors import SandboxProviderError
from lakewright_sandbox.providers.protocol.servicer import ProviderPackage, serve


def _package(name: str) -> ProviderPackage:
    # Loading boto3 takes a while, and the kubernetes provider does not need it.
    if name == "aws":
        from lakewright_sandbox.providers.aws.package import AwsPackage  # noqa: PLC0415

        return AwsPackage()
    from lakewright_sandbox.providers.kubernetes.package import KubernetesPackage  # noqa: PLC0415

    return KubernetesPackage()


def main() -> None:
    """Serve the provider that the command line names until the process ends."""
    parser = argparse.ArgumentParser(prog="python -m lakewright_sandbox.providers", description=__doc__)
    parser.add_argument("package", choices=["aws", "kubernetes"])
    parser.add_argument("--port", type=int, default=0, help="the port to listen on; 0 for a free port")
    parser.add_argument("--address", default="", help="listen at this gRPC address, unix:PATH, instead of a port")
    # The CLI starts plugins with the engine's address as a further argument, which nothing here needs.
    arguments, _ = parser.parse_known_args()
    try:
        server, port = serve(_package(arguments.package), arguments.port, arguments.address)
    except SandboxProviderError as error:
        sys.exit(f"error: {error}")
    print(port, flush=True)
    try:
        server.wait_for_termination()
    except KeyboardInterrupt:
        server.stop(0)


main()
