"""Fixtures of the fault tests."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.fault_injection import FaultSwitch
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST

from tests.integration.provider.faults.fault_cases import SECRETS
from tests.integration.provider.faults.fault_server import FaultServer, Operator


@pytest.fixture(scope="module")
def fault_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServer]:
    database = f"sqlite:///{tmp_path_factory.mktemp('faults') / 'lakekeeper.db'}"
    app = create_app(Settings(database=database, version=NEWEST, skip_storage_validation=True))
    with serve(FaultSwitch(app)) as endpoint, httpx.Client(base_url=endpoint, timeout=10) as http:
        yield FaultServer(http, app.state.lakekeeper)


@pytest.fixture
def operator(fault_server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    operator = Operator(fault_server, monkeypatch)
    yield operator
    fault_server.install()
    fault_server.calls()
