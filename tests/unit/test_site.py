"""The site of the documentation: every page is in its navigation, and no page loads anything from the network."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).parents[2]
MKDOCS = REPOSITORY / "docs" / ".venv" / "bin" / "mkdocs"
FULL = bool(os.environ.get("LAKEWRIGHT_FULL"))
LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]+src=\"?(?:https?:)?//|<link[^>]+stylesheet[^>]+href=\"?(?:https?:)?//"
)


def list_pages(entries: list[object]) -> list[str]:
    """Return the pages of a navigation."""
    pages: list[str] = []
    for entry in entries:
        targets = list(entry.values()) if isinstance(entry, dict) else [entry]
        for target in targets:
            pages += list_pages(target) if isinstance(target, list) else [str(target)]
    return pages


def test_every_page_is_in_the_navigation() -> None:
    navigation = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text("utf-8"))["nav"]
    pages = [str(file.relative_to(REPOSITORY / "docs")) for file in (REPOSITORY / "docs").glob("[!.]*/**/*.md")]
    entries = list_pages(navigation)
    linked_folders = ("adr/", "reference/resources/")  # linked from the README of their folders
    expected = {page for page in pages if not page.startswith(linked_folders) or page.endswith("/README.md")}
    assert {*entries} - {"index.md"} == expected


@pytest.mark.skipif(not FULL, reason="`make test-docs` builds the site")
@pytest.mark.timeout(120)
def test_site_is_built_strictly_and_needs_no_network(tmp_path: Path) -> None:
    """MkDocs fails on links, anchors and pages that do not exist."""
    done = subprocess.run(
        [MKDOCS, "build", "--quiet", "--site-dir", tmp_path],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 60
    assert [str(page) for page in pages if LOADED.search(page.read_text("utf-8"))] == []
