"""The configuration of the proxy in a unit's pod: nginx, which adds the unit's credential to requests of `/catalog`."""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from lakewright.kubernetes.nginx_maps import format_request_maps

CONFIG_FILE = "nginx.conf"
"""Name of nginx's configuration."""
SCRIPT_FILE = "catalog_proxy.js"
"""Name of the script of that configuration, for nginx's module njs."""
LIVENESS_PATH = "/proxy-health/catalog"
"""Path that responds with 200 while the catalog's host responds, also with 502 of a gateway whose server is down."""
READINESS_PATH = "/proxy-health"
"""Path that responds with 200."""
SYSTEM_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Certificate authorities of the images of nginx."""

_MODULE = "/usr/lib/nginx/modules/ngx_http_js_module.so"
"""njs in the images of nginx, and in Debian's package libnginx-mod-http-js."""
_CONNECTION_SECONDS = 5
"""Seconds that a connection to the catalog may be idle. Load balancers close connections after 60 s or later."""
_ADDRESS = re.compile(r"[A-Za-z0-9._~:/@%\[\]!&()*+,=-]*")
"""Characters of an address that nginx does not interpret."""


@dataclass(frozen=True)
class ProxyConfig:
    """Values in the configuration. Paths are paths in the pod."""

    catalog_uri: str
    """Address of the catalog, such as `https://lakekeeper.example/catalog`."""
    project_id: str | None
    """Project of all requests; None for a catalog without projects."""
    token_file: str
    """File with the token. It is read at each request."""
    folder: str
    """Folder of the script."""
    port: int
    """Port on the pod's loopback address."""
    probe_port: int
    """Port of the probes, on all addresses of the pod."""
    ca_bundle: str = SYSTEM_AUTHORITIES
    """PEM file of the authorities that sign the catalog's certificate."""
    scratch: str = "/tmp"  # noqa: S108 - a volume of the pod
    timeout: int = 60
    """Seconds until a request to the catalog fails."""
    max_body_size: int = 32 * 1024 * 1024
    """Bytes of the largest request body. Default: Lakekeeper's limit from 0.14 on."""

    @property
    def uri(self) -> str:
        """Address of the proxy for programs in the pod."""
        return format_uri(self.port)


def format_uri(port: int) -> str:
    """Return the address of the proxy for programs in the pod."""
    return f"http://127.0.0.1:{port}/catalog"


def find_address_mistake(uri: str) -> str | None:
    """Return why the proxy cannot forward to a catalog's address; None if it can."""
    if not _ADDRESS.fullmatch(uri):
        return (
            "expected an address of letters, digits and `._~:/@%[]!&()*+,=-` for nginx in the pods of units of Texera;"
            f" found {uri}"
        )
    parts = urlsplit(uri)
    if parts.scheme == "https" and _is_ip(parts.hostname or ""):
        return (
            "expected a host name with https: nginx in the pods of units of Texera finds no IP address in the catalog's"
            f" certificate; found {uri}"
        )
    return None


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def nginx_config(config: ProxyConfig) -> str:
    """Return nginx.conf.

    The path is checked and forwarded as the client sent it, by the rules of the platform's gateway. Clients cannot set
    the credential or the project: both headers are replaced.
    """
    catalog = urlsplit(config.catalog_uri)
    _refuse_syntax(config.catalog_uri, config.project_id or "")
    port = catalog.port or (443 if catalog.scheme == "https" else 80)
    host = f"[{catalog.hostname}]" if ":" in (catalog.hostname or "") else catalog.hostname
    prefix = catalog.path.rstrip("/")
    host_header = catalog.netloc.rpartition("@")[2]
    project = f"proxy_set_header x-project-id {config.project_id};" if config.project_id else ""
    return f"""\
# Forwards /catalog to {config.catalog_uri} with the unit's token. Listens on the pod's loopback address.
load_module {_MODULE};
worker_processes 1;
daemon off;
pid {config.scratch}/nginx.pid;
error_log /dev/stderr warn;

events {{
    worker_connections 512;
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
        '{{"time":"$time_iso8601","method":"$request_method","status":$status,"bytes":$bytes_sent,'
        '"seconds":$request_time}}';
    access_log /dev/stdout requests;

    client_max_body_size {config.max_body_size};
    client_body_timeout {config.timeout}s;
    large_client_header_buffers 8 32k;

    js_import proxy from {config.folder}/{SCRIPT_FILE};
    js_set $catalog_authorization proxy.authorization;

{format_request_maps(["~^/catalog(?:/|$)"])}    map $request_uri $catalog_path {{
        "~^/catalog(?<below>.*)$" "{prefix}$below";
        default "";
    }}

    # The host's addresses are resolved at the start. The liveness probe restarts the proxy when they have changed.
    upstream catalog {{
        server {host}:{port};
        keepalive 8;
        # Shorter than the idle timeout of the other side, so that no request is sent on a connection that it closes.
        keepalive_timeout {_CONNECTION_SECONDS}s;
    }}
    proxy_http_version 1.1;
    proxy_connect_timeout 5s;
    proxy_read_timeout {config.timeout}s;
    proxy_send_timeout {config.timeout}s;
    # A request that cannot be sent is sent to another address. nginx repeats no POST and no PATCH that it has sent, no
    # request of whose body it has sent a part, and none after 10 s.
    proxy_next_upstream error timeout;
    proxy_next_upstream_tries 2;
    proxy_next_upstream_timeout 10s;
    proxy_redirect off;
    # Bodies pass in parts, and need no disk.
    proxy_request_buffering off;
    proxy_max_temp_file_size 0;
    proxy_buffer_size 32k;
    proxy_buffers 8 64k;
{_tls(config, catalog.scheme, catalog.hostname or "")}
    server {{
        listen 127.0.0.1:{config.port};
        location / {{
            if ($is_method_allowed = 0) {{ return 405 '{_format_error(405, "MethodNotAllowed")}'; }}
            if ($is_forwarded = 0) {{ return 404 '{_format_error(404, "NotForwarded")}'; }}
            if ($catalog_authorization = "") {{ return 503 '{_format_error(503, "TokenUnreadable")}'; }}
            js_header_filter proxy.start;
            js_body_filter proxy.relocate buffer_type=buffer;
            proxy_pass {catalog.scheme}://catalog$catalog_path;
            proxy_set_header Connection "";
            proxy_set_header Host {host_header};
            proxy_set_header Authorization $catalog_authorization;
            {project}
            # The filters read the text of responses.
            proxy_set_header Accept-Encoding "";
            proxy_set_header Forwarded "";
            proxy_set_header X-Forwarded-Host "";
            proxy_set_header X-Forwarded-Proto "";
            proxy_set_header X-Forwarded-Port "";
            proxy_set_header X-Forwarded-Prefix "";
            proxy_set_header X-Forwarded-For "";
        }}
    }}

    server {{
        listen {config.probe_port};
        access_log off;
        location / {{
            return 404;
        }}
        location = {READINESS_PATH} {{
            return 200 '{{"proxy":"ok"}}';
        }}
        location = {LIVENESS_PATH} {{
            proxy_pass {catalog.scheme}://catalog{prefix}/v1/config;
            proxy_set_header Connection "";
            proxy_set_header Host {host_header};
            proxy_pass_request_headers off;
            proxy_intercept_errors on;
            error_page 400 401 403 404 405 408 421 429 500 501 502 503 504 = @host;
        }}
        # nginx's own 502 and 504 come without a byte of the host.
        location @host {{
            if ($upstream_bytes_received ~ "[1-9]") {{ return 200; }}
            return 502;
        }}
    }}
}}
"""


def _tls(config: ProxyConfig, scheme: str, host: str) -> str:
    if scheme != "https":
        return ""
    return f"""\
    proxy_ssl_server_name on;
    proxy_ssl_name {host};
    proxy_ssl_verify on;
    proxy_ssl_verify_depth 5;
    proxy_ssl_trusted_certificate {_quote(config.ca_bundle)};
    proxy_ssl_protocols TLSv1.2 TLSv1.3;
"""


def _quote(text: str) -> str:
    """Return a text in quotes, of which nginx keeps every character."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_MESSAGES = {
    "MethodNotAllowed": "The proxy forwards methods of the Iceberg REST catalog only",
    "NotForwarded": "The proxy forwards /catalog only",
    "TokenUnreadable": "The proxy cannot read the token of the computing unit",
}


def _format_error(status: int, kind: str) -> str:
    """Return an error in the form of the Iceberg REST specification."""
    return json.dumps({"error": {"message": _MESSAGES[kind], "type": kind, "code": status}})


def _refuse_syntax(*texts: str) -> None:
    """Raise ValueError for characters that nginx would interpret."""
    for text in texts:
        if not _ADDRESS.fullmatch(text):
            raise ValueError(f"expected an address or a project's ID for nginx's configuration; found {text!r}")
