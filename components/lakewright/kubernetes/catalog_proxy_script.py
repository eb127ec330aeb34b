"""The script of the proxy in a unit's pod, for nginx's module njs: the token, and the addresses in responses."""

from __future__ import annotations

import json

from lakewright.kubernetes.catalog_proxy_config import ProxyConfig


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
const TABLE_KEYS = [
    '"signer.uri"',
    '"s3.signer.uri"',
    '"client.refresh-credentials-endpoint"',
    '"gcs.oauth2.refresh-credentials-endpoint"',
    '"adls.refresh-credentials-endpoint"',
];
const CONFIG_KEYS = TABLE_KEYS.concat('"uri"');
// Ends of all keys. A search for two short texts takes less time than a search for each key.
const KEY_ENDS = ['uri"', 'endpoint"'];
const LONGEST_KEY = CONFIG_KEYS.reduce((longest, key) => Math.max(longest, key.length), 0);
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
    for (let end = findKeyEnd(data, from); end >= 0; end = findKeyEnd(data, end)) {{
        const text = data.subarray(Math.max(from, end - LONGEST_KEY), end).toString('utf8');
        const key = keys.find((key) => text.endsWith(key));
        if (key) {{
            return {{ start: end - key.length, end: end }};
        }}
    }}
    return null;
}}

// The index after the next text that keys end with, or -1.
function findKeyEnd(data, from) {{
    let first = -1;
    KEY_ENDS.forEach((text) => {{
        const start = data.indexOf(text, from);
        if (start >= 0 && (first < 0 || start + text.length < first)) {{
            first = start + text.length;
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
