"""Fixtures of the browser: headless Chromium, and pages of made-up fleets."""

from __future__ import annotations

import os
import shutil
import site
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from lakewright.report.assembly import build_report
from lakewright.report.page import render_report

from tests.fleet_documents import HOSTILE, NOW, make_sources

for folder in Path(os.environ.get("TEST_BROWSER_ENVIRONMENT", "")).glob("lib/python*/site-packages"):
    site.addsitedir(str(folder))  # behind the packages of this environment

OpenReport = Callable[..., Any]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Return Chromium. `make test-browser` installs it, and Playwright."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or pytest.fail("chromium is not on the PATH: run make test-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of twelve tenants. The names of the first are hostile."""
    file = tmp_path_factory.mktemp("report") / "index.html"
    model = build_report(make_sources(12, HOSTILE), now=NOW, title=HOSTILE[1])
    file.write_text(render_report(model), encoding="utf-8")
    return file


@pytest.fixture
def open_report(browser: Any, report_file: Path) -> Iterator[OpenReport]:
    """Return a function that opens the page of a report in a new window. Errors and requests of the page fail the test.

    It takes the keyword arguments of a browser context, such as `viewport` and `color_scheme`.
    """
    contexts: list[Any] = []
    problems: list[str] = []

    def open_page(file: Path = report_file, **options: Any) -> Any:
        context = browser.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: None if request.url == file.as_uri() else problems.append(request.url))
        page.clock.install(time=NOW)
        page.goto(file.as_uri())
        page.locator("table.fleet").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []
