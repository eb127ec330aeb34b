"""The configuration of the gateway: nginx, which forwards `/catalog` and `/health` of a raw request path only."""

from __future__ import annotations

import json
from dataclasses import dataclass

from lakewright.kubernetes.nginx_maps import format_request_maps

CONNECTION_SECONDS = 5
"""Seconds that a connection to the server is used, and that it may then wait for a last request."""
PROBE_PATH = "/gateway-health"
"""Path to which the gateway itself responds."""


@dataclass(frozen=True)
class GatewayConfig:
    """Values in the gateway's configuration. Paths are paths in the pod."""

    upstream: str
    """`HOST:PORT` of the server."""
    port: int
    max_body_size: int
    """Bytes of the largest request body."""
    timeout: int = 60
    """Seconds until a request to the server fails."""
    tls_folder: str | None = None
    """Folder of `tls.crt` and `tls.key`; None for plain HTTP."""
    bind: str = ""
    """Address to listen on. Default: all."""
    scratch: str = "/tmp"  # noqa: S108 - a volume of the pod


def nginx_config(config: GatewayConfig) -> str:
    """Return nginx.conf.

    Decisions are made on the path as the client sent it, and that path is forwarded unchanged: the server sees
    the checked path (`nginx_maps`). The server neither decodes nor normalizes a path before it routes.
    """
    return f"""\
# The only paths forwarded are /catalog and /health. The management API is not reachable here.
# With `auto`, one for each CPU of the node: on a large node, they would need more than the pod's memory.
worker_processes 4;
daemon off;
pid {config.scratch}/nginx.pid;
error_log /dev/stderr warn;

events {{
    worker_connections 4096;
}}

http {{
    server_tokens off;
    default_type application/json;
    client_body_temp_path {config.scratch}/client-body;
    proxy_temp_path {config.scratch}/proxy;
    fastcgi_temp_path {config.scratch}/fastcgi;
    uwsgi_temp_path {config.scratch}/uwsgi;
    scgi_temp_path {config.scratch}/scgi;

    # Neither headers nor queries, which may contain tokens.
    log_format requests escape=json
        '{{"time":"$time_iso8601","client":"$remote_addr","method":"$request_method","status":$status,'
        '"bytes":$bytes_sent,"seconds":$request_time,"request_id":"$http_x_request_id"}}';
    access_log /dev/stdout requests;

    client_max_body_size {config.max_body_size};
    client_header_timeout 15s;
    client_body_timeout {config.timeout}s;
    large_client_header_buffers 8 32k;
    keepalive_timeout 75s;

{format_request_maps(["~^/catalog(?:/|$)", "/health"])}{_tls_map(config)}
    upstream lakekeeper {{
        server {config.upstream};
        keepalive 64;
        # A server that terminates gets no requests on new connections, and waits until these have ended
        # (`compute_drain_seconds`). Otherwise, a request would be sent on a connection that it just closes.
        keepalive_time {CONNECTION_SECONDS}s;
        keepalive_timeout {CONNECTION_SECONDS}s;
    }}

    server {{
{_listen(config)}
        location = {PROBE_PATH} {{
            access_log off;
            return 200 '{{"gateway":"ok"}}';
        }}
        location / {{
            if ($is_method_allowed = 0) {{ return 405 '{_format_error(405, "MethodNotAllowed")}'; }}
            if ($is_forwarded = 0) {{ return 404 '{_format_error(404, "NotForwarded")}'; }}
            proxy_pass http://lakekeeper;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
            # The server's addresses come from its BASE_URI; a client must not choose them.
            proxy_set_header Forwarded "";
            proxy_set_header X-Forwarded-Host "";
            proxy_set_header X-Forwarded-Proto "";
            proxy_set_header X-Forwarded-Port "";
            proxy_set_header X-Forwarded-Prefix "";
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_connect_timeout 5s;
            proxy_read_timeout {config.timeout}s;
            proxy_send_timeout {config.timeout}s;
            proxy_next_upstream off;
            proxy_redirect off;
            proxy_request_buffering on;
            # A response to a slow client waits at the server instead of in a file.
            proxy_max_temp_file_size 0;
        }}
    }}
}}
"""


def _format_error(status: int, kind: str) -> str:
    """Return an error in the form of the Iceberg REST specification."""
    message = "The gateway forwards /catalog and /health only"
    return json.dumps({"error": {"message": message, "type": kind, "code": status}})


def _tls_map(config: GatewayConfig) -> str:
    if config.tls_folder is None:
        return ""
    # With variables, nginx reads the files at each handshake, so a renewed certificate needs no restart.
    return f"""    map $request_method $certificate {{ default {config.tls_folder}/tls.crt; }}
    map $request_method $certificate_key {{ default {config.tls_folder}/tls.key; }}
"""


def _listen(config: GatewayConfig) -> str:
    address = f"{config.bind}:{config.port}" if config.bind else str(config.port)
    if config.tls_folder is None:
        return f"        listen {address};"
    return f"""        listen {address} ssl;
        ssl_certificate $certificate;
        ssl_certificate_key $certificate_key;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_cache shared:tls:10m;"""
