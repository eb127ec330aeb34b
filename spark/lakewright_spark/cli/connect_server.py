"""Command `connect-server`: serve a tenant's warehouses over Spark Connect. Computing units run it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakewright_spark.catalog.loading import load_config
from lakewright_spark.cli.options import ConfigFile, key_and_value

NAME = "connect-server"


def serve(
    *,
    token_file: Annotated[
        Path, typer.Option("--token-file", help="File with the token that clients must send.", dir_okay=False)
    ],
    tls: Annotated[
        Path | None,
        typer.Option(
            help="Folder with tls.crt and tls.key (PKCS #8). Without it, the port has no TLS.", file_okay=False
        ),
    ] = None,
    port: Annotated[
        int, typer.Option(min=1, max=65535, envvar="LAKEWRIGHT_CONNECT_PORT", help="Port of Spark Connect.")
    ] = 15002,
    config: ConfigFile = None,
    conf: Annotated[
        list[str] | None, typer.Option(help="Spark property KEY=VALUE without a secret; repeatable.")
    ] = None,
) -> None:
    """Serve all warehouses of the configuration as named catalogs over Spark Connect, until SIGTERM.

    Example: lakewright-spark connect-server --token-file token.txt
    """
    catalog = load_config(config)
    properties = dict(key_and_value(text) for text in conf or [])
    from lakewright_spark.session.connect_server import ConnectServer  # noqa: PLC0415  # loads PySpark

    ConnectServer(catalog, token_file=token_file, tls=tls, port=port, properties=properties).replace_process()
