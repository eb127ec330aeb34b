"""Fixtures of the drift tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lakewright.lakekeeper.provider import run_context
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

from tests.integration.drift.fleet import Fleet


@pytest.fixture
def http(tmp_path: Path) -> Iterator[httpx.Client]:
    """Client of another user on a server of this test, which tests no storage and counts calls."""
    settings = Settings(database=f"sqlite:///{tmp_path / 'lakekeeper.db'}", skip_storage_validation=True)
    with serve(FaultSwitch(create_app(settings))) as endpoint, httpx.Client(base_url=endpoint, timeout=60) as client:
        client.post("/management/v1/bootstrap", json={"accept-terms-of-use": True}).raise_for_status()
        yield client


@pytest.fixture
def fleet(tmp_path: Path, http: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", "test")
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    run_context.start(run_context.RunContext())
    return Fleet(folder, {"endpoint": str(http.base_url).rstrip("/")})
