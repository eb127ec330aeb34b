"""The document of a page: its policy, its data block, and the libraries that it contains."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html import unescape

import pytest
from lakewright.report import page
from lakewright.report.assembly import build_report
from lakewright.report.page import ASSETS, render_report

from tests.fleet_documents import HOSTILE, NOW, make_sources

HTML = render_report(build_report(make_sources(6, HOSTILE), now=NOW, title=HOSTILE[1]))


def list_scripts(html: str) -> list[tuple[str, str]]:
    return re.findall(r"<script([^>]*)>(.*?)</script>", html, re.DOTALL)


def read_policy(html: str) -> dict[str, list[str]]:
    match = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert match
    directives = [directive.split() for directive in unescape(match[1]).split(";")]
    return {name: values for name, *values in directives}


def compute_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_permits_exactly_the_scripts_and_styles() -> None:
    policy = read_policy(HTML)
    scripts = [text for attributes, text in list_scripts(HTML) if not attributes]
    styles = re.findall(r"<style>(.*?)</style>", HTML, re.DOTALL)

    assert policy["default-src"] == ["'none'"]
    assert policy["script-src"] == [compute_hash(text) for text in scripts]
    assert policy["style-src"] == [compute_hash(text) for text in styles]
    assert policy["connect-src"] == ["'none'"]
    assert "'unsafe-inline'" not in str(policy)


def test_data_cannot_end_its_block() -> None:
    blocks = [text for attributes, text in list_scripts(HTML) if "application/json" in attributes]

    assert len(blocks) == 1
    assert not re.search("[<>&\u2028\u2029]", blocks[0])
    assert {tenant["stack"] for tenant in json.loads(blocks[0])["tenants"]} >= {*HOSTILE}


def test_title_is_escaped() -> None:
    assert HOSTILE[1] not in HTML


def test_hashes_do_not_depend_on_data() -> None:
    other = render_report(build_report(make_sources(1), now=NOW))

    assert read_policy(other) == read_policy(HTML)


def test_live_page_has_no_data_and_its_own_server_only() -> None:
    live = render_report(None)

    assert read_policy(live)["connect-src"] == ["'self'"]
    assert '<script type="application/json" id="data">null</script>' in live


def test_page_names_no_other_place() -> None:
    addresses = {*re.findall(r"https?://[^\s\"'`<>)]+", HTML)}

    assert {address for address in addresses if "leeoniya/uPlot" not in address} == {"http://www.w3.org/2000/svg"}


def test_scripts_use_no_html_and_no_inline_style() -> None:
    for name in (*page._REPORT_SCRIPTS, *page._CHANGES_SCRIPTS):
        text = (ASSETS / name).read_text("utf-8")
        if name != page.CHARTS:
            assert not re.search(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function", text), (
                name
            )


def test_library_is_the_pinned_release() -> None:
    pins = json.loads((ASSETS / "uplot" / "pins.json").read_text())
    files = {file.name for file in (ASSETS / "uplot").iterdir()} - {"pins.json"}

    assert files == {*pins["sha256"]}
    for name, digest in pins["sha256"].items():
        assert hashlib.sha256((ASSETS / "uplot" / name).read_bytes()).hexdigest() == digest, name
    assert f"(v{pins['version']})" in (ASSETS / page.CHARTS).read_text("utf-8")


def test_page_has_the_license_of_the_library() -> None:
    assert "Copyright (c) 2022 Leon Sorokin" in HTML


@pytest.mark.parametrize("text", ["</script>", "<!--", "a & b", "\u2028"])
def test_json_block_keeps_texts(text: str) -> None:
    assert json.loads(page.to_json_block({"name": text})) == {"name": text}
