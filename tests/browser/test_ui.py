"""`lakewright ui` in a browser: the token of its address, and updates while the page is open."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command_server import LAKEWRIGHT
from tests.fleet_documents import list_fleet_stacks, make_stacks


@dataclass
class RunningUi:
    """A started `lakewright ui`."""

    url: str
    source: Path
    process: subprocess.Popen[str]


@pytest.fixture
def ui(tmp_path: Path) -> Iterator[RunningUi]:
    (tmp_path / "Pulumi.yaml").write_text("name: acme-lakehouse\nruntime: python\n")
    source = tmp_path / "list.json"
    source.write_text(json.dumps(list_fleet_stacks(make_stacks(3))))
    command = [LAKEWRIGHT, "ui", "--from", str(source), "--every", "5"]
    environ = {**os.environ, "PULUMI_BACKEND_URL": (tmp_path / "state").as_uri()}
    process = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    yield RunningUi(process.stdout.readline().strip(), source, process)
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


def test_page_follows_its_source(browser: Any, ui: RunningUi) -> None:
    page = browser.new_page()
    page.goto(ui.url)
    page.locator("button[data-stack]").first.click()
    before = page.locator("button[data-stack]").count()
    ui.source.write_text(json.dumps(list_fleet_stacks(make_stacks(4))))
    page.get_by_role("button", name="Refresh").click()
    page.locator("button[data-stack]").nth(3).wait_for()

    assert before == 3
    assert page.locator("button[data-stack][aria-expanded=true]").count() == 1
    page.close()


def test_token_leaves_the_address_and_survives_a_reload(browser: Any, ui: RunningUi) -> None:
    page = browser.new_page()
    page.goto(ui.url)
    page.locator("table.fleet").wait_for()
    address = page.url
    page.reload()
    page.locator("table.fleet").wait_for()

    token = ui.url.partition("#")[2]
    assert len(token) > 40
    assert token not in address
    assert token not in Path(f"/proc/{ui.process.pid}/cmdline").read_text()
    page.close()


def test_page_without_the_token_shows_nothing(browser: Any, ui: RunningUi) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(ui.url.partition("#")[0])
    notice = page.locator(".notice").inner_text()

    assert "open the address that `lakewright ui` printed" in notice
    assert page.locator("table.fleet").count() == 0
    context.close()
