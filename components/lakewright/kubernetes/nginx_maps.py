"""Rules of nginx about requests that may pass to the catalog: paths as the client sent them, and methods."""

from __future__ import annotations

from collections.abc import Iterable


def format_request_maps(forwarded: Iterable[str]) -> str:
    """Return maps that set `$path_as_sent`, `$is_forwarded` and `$is_method_allowed`, for the block `http`.

    A path with a segment of dots, an empty segment, or an encoded slash, backslash, dot segment or percent sign of one
    is not forwarded, so no proxy behind could read another path from it. Other encoded characters pass: Iceberg
    separates levels of namespaces by `%1F`.

    Args:
        forwarded: Patterns of nginx for the paths to forward.
    """
    rules = "\n".join(f'        "{pattern}" 1;' for pattern in forwarded)
    return f"""\
    map $request_uri $path_as_sent {{
        "~^(?<sent>[^?#]*)" $sent;
        default "";
    }}
    map $path_as_sent $is_forwarded {{
        default 0;
        "~*(?:^|/)(?:\\.|%2e)+(?:[;/\\x5c]|%2f|%5c|$)" 0;
        "~*(?://|\\x5c|%2f|%5c|%00|%25(?:2e|2f|5c|25))" 0;
{rules}
    }}
    map $request_method $is_method_allowed {{
        default 0;
        "~^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS)$" 1;
    }}
"""
