"""Make HTML documents that contain their scripts and styles, under a strict content security policy.

The policy permits exactly the scripts and styles of this package, by their hashes. Data is a JSON block, which browsers
do not run, and its `<`, `>`, `&` and line separators are escaped, so that no text of it can end the block.
"""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

ASSETS = files("lakewright.report") / "assets"
"""The folder of the styles and scripts."""
CHARTS = "uplot/uPlot.iife.min.js"
_REPORT_STYLES = ("uplot/uPlot.min.css", "base.css", "report.css")
_REPORT_SCRIPTS = (CHARTS, "elements.js", "theme.js", "diagram.js", "charts.js", "details.js", "table.js", "main.js")
_CHANGES_STYLES = ("base.css", "changes.css")
_CHANGES_SCRIPTS = ("elements.js", "theme.js", "changes.js")
_ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"})


def render_report(report: dict[str, Any] | None) -> str:
    """Return the page of a report.

    Args:
        report: The model of `build_report`. None for the page of `lakewright ui`, which reads it from its server.
    """
    title = f"{report['title']} - Lakewright report" if report and report["title"] else "Lakewright report"
    connections = "'none'" if report else "'self'"
    return _render(title, _REPORT_STYLES, _REPORT_SCRIPTS, report, connections)


def render_changes(changes: dict[str, Any]) -> str:
    """Return the page of a preview, from the model of `build_changes`."""
    return _render(f"{changes['stack']} - Lakewright preview", _CHANGES_STYLES, _CHANGES_SCRIPTS, changes, "'none'")


def to_json_block(data: object) -> str:
    r"""Return JSON that can stand inside a script element.

    >>> print(to_json_block({"name": "</script>"}))
    {"name":"\u003c/script\u003e"}
    """
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).translate(_ESCAPES)


def make_policy(styles: list[str], scripts: list[str], connections: str) -> str:
    """Return the content security policy of a page: these styles and scripts, no other source, no base and no form."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src {' '.join(map(_hash, scripts))}",
            f"style-src {' '.join(map(_hash, styles))}",
            f"connect-src {connections}",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def _render(title: str, styles: tuple[str, ...], scripts: tuple[str, ...], data: object, connections: str) -> str:
    licenses = [name.rpartition("/")[0] + "/LICENSE" for name in scripts if "/" in name]
    style_texts, script_texts = [_read_asset(name) for name in styles], [_read_asset(name) for name in scripts]
    policy = make_policy(style_texts, script_texts, connections)
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">',
        '<meta name="referrer" content="no-referrer">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{escape(title)}</title>",
        *(f"<style>{text}</style>" for text in style_texts),
        "</head>",
        "<body>",
        *(f"<!-- {_read_asset(name)} -->" for name in licenses),
        "<noscript>This page needs JavaScript. It runs only the scripts that it contains.</noscript>",
        '<div id="page"></div>',
        f'<script type="application/json" id="data">{to_json_block(data)}</script>',
        *(f"<script>{text}</script>" for text in script_texts),
        "</body>",
        "</html>",
        "",
    ]
    return "\n".join(lines)


@cache
def _read_asset(name: str) -> str:
    return (ASSETS / name).read_text("utf-8")
