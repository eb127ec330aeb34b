"""The configuration of the proxy in a unit's pod: nginx, which adds the unit's credential to requests of `/catalog`."""

from __future__ import annotations

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
"""Path that responds with 200 while the catalog's host responds with any status."""
READINESS_PATH = "/proxy-health"
"""Path that responds with 200."""
SYSTEM_AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
"""Certificate authorities of the images of nginx."""

_MODULE = "/usr/lib/nginx/modules/ngx_http_js_module.so"
"""njs in the images of nginx, and in Debian's package libnginx-mod-http-js."""
_MAX_BODY = 32 * 1024 * 1024
"""Bytes: Lakekeeper's limit from 0.14 on."""


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

    @property
    def uri(self) -> str:
        """Address of the proxy for programs in the pod."""
        return f"http://127.0.0.1:{self.port}/catalog"


def nginx_script(config: ProxyConfig) -> str:
    """Return the script. It reads the token, and replaces the catalog's own address in responses by the proxy's.

    Lakekeeper names its address in the configuration of clients (`overrides.uri`), and in the configuration of tables
    for renewed credentials and signed requests. Clients would leave the proxy there, and send no token. The script
    passes each part of a response on when it arrives, as njs frees no memory before the end of a request.
    """
    return f"""\
import fs from 'fs';

const TOKEN_FILE = {json.dumps(config.token_file)};
const PROXY = {json.dumps(config.uri)};
const TABLE_KEYS = ['"s3.signer.uri"', '"client.refresh-credentials-endpoint"'];
const CONFIG_KEYS = TABLE_KEYS.concat('"uri"');
const LONGEST_KEY = 40;
const LONGEST_ADDRESS = 8192;
const ADDRESS = /^("[^"]*"\\s*:\\s*")https?:\\/\\/[^"]*?\\/catalog(?=[\\/"])/;
const QUOTE = 34;

// Bytes at the end of the last part that may be the beginning of a key with an address.
let unsent = null;

// Kubernetes replaces the file before the token expires.
function authorization(r) {{
    try {{
        const token = fs.readFileSync(TOKEN_FILE, 'utf8').trim();
        return token ? 'Bearer ' + token : '';
    }} catch (error) {{
        r.error('cannot read the token: ' + error.message);
        return '';
    }}
}}

function start(r) {{
    unsent = null;
    delete r.headersOut['Content-Length'];
}}

function relocate(r, data, flags) {{
    const keys = r.uri === '/catalog/v1/config' ? CONFIG_KEYS : TABLE_KEYS;
    if (unsent) {{
        data = Buffer.concat([unsent, data]);
        unsent = null;
    }}
    let sent = 0;
    for (let key = findKey(data, 0, keys); key; key = findKey(data, key.end, keys)) {{
        const end = findEnd(data, key.end);
        if (end < 0) {{
            if (!flags.last && data.length - key.start < LONGEST_ADDRESS) {{
                sent = send(r, data, sent, key.start);
                unsent = data.subarray(key.start);
                return;
            }}
            continue;
        }}
        if (end - key.start > LONGEST_ADDRESS) {{
            continue;
        }}
        const entry = data.subarray(key.start, end).toString('utf8');
        const relocated = entry.replace(ADDRESS, '$1' + PROXY);
        if (relocated !== entry) {{
            send(r, data, sent, key.start);
            r.sendBuffer(Buffer.from(relocated), {{ last: false }});
            sent = end;
            key.end = end;
        }}
    }}
    if (flags.last) {{
        r.sendBuffer(data.subarray(sent), flags);
        return;
    }}
    const complete = findPartialKey(data, sent, keys);
    send(r, data, sent, complete);
    if (complete < data.length) {{
        unsent = data.subarray(complete);
    }}
}}

function send(r, data, start, end) {{
    if (end > start) {{
        r.sendBuffer(data.subarray(start, end), {{ last: false }});
    }}
    return end;
}}

function findKey(data, from, keys) {{
    let first = null;
    keys.forEach((key) => {{
        const start = data.indexOf(key, from);
        if (start >= 0 && (first === null || start < first.start)) {{
            first = {{ start: start, end: start + key.length }};
        }}
    }});
    return first;
}}

// The index after the closing quote of the text that follows a key, or -1.
function findEnd(data, from) {{
    const opening = data.indexOf('"', from);
    const closing = opening < 0 ? -1 : data.indexOf('"', opening + 1);
    return closing < 0 ? -1 : closing + 1;
}}

// The index from which the end of the data may be the beginning of a key, or its length.
function findPartialKey(data, from, keys) {{
    for (let index = data.length - 1; index >= from && data.length - index < LONGEST_KEY; index--) {{
        if (data[index] === QUOTE) {{
            const text = data.subarray(index).toString('utf8');
            return keys.some((key) => key.startsWith(text)) ? index : data.length;
        }}
    }}
    return data.length;
}}

export default {{ authorization, start, relocate }};
"""


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

    client_max_body_size {_MAX_BODY};
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
    }}
    proxy_http_version 1.1;
    proxy_connect_timeout 5s;
    proxy_read_timeout {config.timeout}s;
    proxy_send_timeout {config.timeout}s;
    proxy_next_upstream off;
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
            error_page 400 401 403 404 429 500 503 =200 {READINESS_PATH};
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
    proxy_ssl_trusted_certificate {config.ca_bundle};
    proxy_ssl_protocols TLSv1.2 TLSv1.3;
"""


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
        if not re.fullmatch(r"[A-Za-z0-9._~:/@%\[\]-]*", text):
            raise ValueError(f"expected an address or a project's ID for nginx's configuration; found {text!r}")
