"""The report page in a browser: accessibility, widths, hostile names, search, filters, keyboard, print, speed."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
from lakewright.report.assembly import build_report
from lakewright.report.page import render_report

from tests.browser.conftest import OpenReport
from tests.fleet_documents import HOSTILE, NOW, make_sources

WIDTHS = (360, 900, 1400)
MODES = ("light", "dark")
LOAD_SECONDS = 2.0
"""Target for 1,000 tenants. It is printed, and is no assertion: the time depends on the machine."""


def list_tenants(page: Any) -> list[str]:
    return page.locator("button[data-stack]").all_inner_texts()


def find_serious_violations(page: Any) -> dict[str, list[str]]:
    """Return what axe-core calls serious or critical: rule and elements."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page).response["violations"]
    return {
        violation["id"]: [node["html"][:200] for node in violation["nodes"][:3]]
        for violation in violations
        if violation["impact"] in ("serious", "critical")
    }


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing_serious(open_report: OpenReport, width: int, mode: str) -> None:
    page = open_report(viewport={"width": width, "height": 900}, color_scheme=mode)
    page.locator("button[data-stack]").first.click()

    assert find_serious_violations(page) == {}


def test_axe_sees_a_violation(open_report: OpenReport) -> None:
    """The check of the other tests can fail."""
    page = open_report()
    page.evaluate("document.querySelector('#search').removeAttribute('aria-label')")
    page.evaluate("document.querySelector('#search').removeAttribute('placeholder')")

    assert "label" in find_serious_violations(page)


def test_axe_accepts_the_help(open_report: OpenReport) -> None:
    page = open_report()
    page.keyboard.press("?")

    assert page.locator("dialog").is_visible()
    assert find_serious_violations(page) == {}


@pytest.mark.parametrize("width", [*WIDTHS, 861, 1021])
def test_no_width_scrolls_sideways(open_report: OpenReport, width: int) -> None:
    page = open_report(viewport={"width": width, "height": 900})
    for button in page.locator("button[data-stack]").all():
        button.click()

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("tr.details").count() == 12
    wider = "[...document.querySelectorAll('table.fleet *')].filter(e => !e.closest('svg') && !e.closest('.tree') && "
    assert page.evaluate(f"{wider} e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML)") == []


def test_hostile_names_remain_text(open_report: OpenReport) -> None:
    page = open_report()
    for button in page.locator("button[data-stack]").all():
        button.click()

    assert {*HOSTILE} <= {*list_tenants(page)}
    assert page.locator("h1").inner_text() == HOSTILE[1]
    assert page.evaluate("window.attacked") is None
    assert page.locator("main img, main b:not(.sources b), main script").count() == 0


def test_policy_stops_injected_code(browser: Any, report_file: Path) -> None:
    """Even a page into which code was written runs only its own scripts, and loads nothing."""
    page = browser.new_page()
    blocked: list[str] = []
    page.on("console", lambda message: blocked.append(message.text))
    code = "<script>window.attacked=1</script><img src='https://attacker.example/x' onerror='window.attacked=1'>"
    changed = report_file.with_name("changed.html")
    changed.write_text(report_file.read_text("utf-8").replace("</body>", f"{code}</body>"), encoding="utf-8")
    page.goto(changed.as_uri())
    page.locator("table.fleet").wait_for()

    assert page.evaluate("window.attacked") is None
    assert sum("Content Security Policy" in text for text in blocked) >= 2
    page.close()


def test_search_finds_names_owners_and_labels(open_report: OpenReport) -> None:
    page = open_report()
    for query, expected in {"cohorts": ["cohorts"], "GENOMICS staging": ["cohorts"], "nothing-has-this": []}.items():
        page.fill("#search", query)
        assert list_tenants(page) == expected
    page.fill("#search", "tier=gold")

    assert len(list_tenants(page)) == 6
    assert page.locator("#result").inner_text() == "6 of 12 tenants"


def test_filters_and_order(open_report: OpenReport) -> None:
    page = open_report()
    page.click("button[data-filter=checks]")
    failed = list_tenants(page)
    page.click("button[data-filter=all]")
    page.select_option("#environment", "staging")
    staging = list_tenants(page)
    page.select_option("#environment", "")
    page.uncheck("#grouped")
    page.click("button[data-sort=live]")
    sizes = page.locator("td[data-label=Live]").all_inner_texts()

    assert len(failed) == 2
    assert len(staging) == 2
    numbers = [float(size.replace("\u00a0", " ").removesuffix(" GB")) for size in sizes]
    assert numbers == sorted(numbers, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text() == "Live"


def test_keyboard_alone_opens_a_tenant(open_report: OpenReport) -> None:
    page = open_report()
    page.keyboard.press("/")
    page.keyboard.type("production")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")

    second = page.locator("button[data-stack]").nth(1)
    assert second.get_attribute("aria-expanded") == "true"
    assert page.evaluate("document.activeElement.dataset.stack") == second.get_attribute("data-stack")
    page.keyboard.press("Escape")
    assert second.get_attribute("aria-expanded") == "false"


def test_details_show_parts_and_problems(open_report: OpenReport) -> None:
    page = open_report()
    page.click("button[data-stack=assays]")
    text = page.locator("tr.details").inner_text()

    assert "delete_profile.expiration_seconds" in text
    assert "remove the grant" in text
    assert "72 files rewritten to 3, 3.0 GB read" in text
    titles = page.locator("tr.details svg .node title").all_text_contents()
    parts = {title.partition("\n")[0] for title in titles}
    assert {"notebook", "executions", "curated", "lakewright.assays.curated", "acme-assays-lakehouse"} <= parts
    assert page.locator("tr.details svg path").count() == 7


def test_sources_show_their_age(open_report: OpenReport) -> None:
    page = open_report()
    text = page.locator(".sources").inner_text()

    assert re.search(r"drift\s+6\sh ago", text)
    assert page.locator(".sources .level.warn").inner_text().startswith("verify")


def test_mode_is_chosen_and_kept(open_report: OpenReport) -> None:
    page = open_report(color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.select_option("select[aria-label='Color mode']", "dark")
    dark = page.evaluate(background)
    page.reload()
    page.locator("table.fleet").wait_for()

    assert light != dark
    assert page.evaluate(background) == dark


def test_print_is_light_and_has_no_controls(open_report: OpenReport) -> None:
    page = open_report(color_scheme="dark")
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")

    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator(".toolbar").is_visible()
    assert page.locator("table.fleet").is_visible()


def test_thousand_tenants_load(open_report: OpenReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "index.html"
    file.write_text(render_report(build_report(make_sources(1000, history=2), now=NOW)), encoding="utf-8")
    began = time.perf_counter()
    page = open_report(file)
    seconds = time.perf_counter() - began
    began = time.perf_counter()
    page.fill("#search", "orders-0048")
    matching = list_tenants(page)
    search_seconds = time.perf_counter() - began
    page.fill("#search", "")
    page.mouse.wheel(0, 100_000)
    page.locator("button[data-stack]").nth(200).wait_for()
    page.click("#more")
    every = page.locator("button[data-stack]").count()
    with capsys.disabled():
        print(
            f"\n1,000 tenants: loaded in {seconds:.2f} s ({seconds / LOAD_SECONDS:.2f} of the target), searched in"
            f" {search_seconds:.2f} s, {file.stat().st_size / 1e6:.1f} MB"
        )

    assert matching == ["orders-0048"]
    assert every == 1000
