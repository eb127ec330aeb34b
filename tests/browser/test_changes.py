"""The page of `preview --html` in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lakewright.report.changes import list_documents
from lakewright.report.page import render_changes

from tests.browser.test_report import MODES, WIDTHS, find_serious_violations
from tests.fleet_documents import HOSTILE

LONG = {f"setting-{number:02}": number for number in range(40)}


def make_step(op: str, name: str, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    documents = [document.to_json() for document in list_documents("aws:x:X", old, new)]
    facts = {
        "op": op,
        "dangerous": op == "delete",
        "failed": False,
        "urn": "",
        "type": "aws:s3/bucket:Bucket",
        "name": name,
    }
    return {**facts, "part": "storage", "keys": [], "documents": documents}


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    steps = [
        make_step("update", "settings", {**LONG, "last": "a"}, {**LONG, "last": "b"}),
        *(make_step("create", name, {}, {"name": name, "policy": '{"text": "' + "x" * 300 + '"}'}) for name in HOSTILE),
        make_step("delete", "bucket", {"bucket": "acme"}, {}),
    ]
    changes = {"version": 1, "stack": HOSTILE[1], "verb": "preview", "at": "2026-11-24T09:30:00Z"}
    changes |= {"changes": {"create": 4, "update": 1, "same": 9}, "messages": [HOSTILE[0]], "steps": steps}
    file = tmp_path_factory.mktemp("changes") / "preview.html"
    file.write_text(render_changes(changes), encoding="utf-8")
    return file


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_page_is_accessible_and_fits(browser: Any, page_file: Path, width: int, mode: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=mode)
    page.goto(page_file.as_uri())

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert find_serious_violations(page) == {}
    page.close()


def test_unchanged_lines_are_folded_and_names_are_text(browser: Any, page_file: Path) -> None:
    page = browser.new_page()
    page.goto(page_file.as_uri())
    first = page.locator("article").first
    folded = first.locator(".lines > div").count()
    first.get_by_role("button", name="unchanged lines").first.click()

    assert first.locator(".lines > div").count() > folded
    assert first.locator(".added").inner_text().endswith("last: b")
    assert page.evaluate("window.attacked") is None
    assert {*HOSTILE} <= {*page.locator("article h3").all_inner_texts()}
    page.fill("#search", "delete")
    assert page.locator("article h3").all_inner_texts() == ["bucket"]
    page.close()
