"""Warehouses created through the public APIs, so that these tests depend on no other part of the project."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig

sys.path.insert(0, str(Path(__file__).parent))  # shared modules of these tests

from projects import Project, post

from tests.real_servers import RealServers


@pytest.fixture(scope="session")
def project(sandbox: Sandbox, real: RealServers | None) -> Iterator[Project]:
    """Return a project on the sandbox or on the configured servers; all tests share it."""
    if real:
        with real.http() as server:
            yield Project(server, sandbox, real)
        return
    with httpx.Client(base_url=sandbox.lakekeeper.endpoint, timeout=60) as server:
        post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True}, tolerate="CatalogAlreadyBootstrapped")
        yield Project(server, sandbox)


@pytest.fixture(scope="session")
def catalog_config(project: Project) -> CatalogConfig:
    """Return a tenant with the warehouse `results`: vended credentials, and the namespaces of preset `texera`."""
    return project.config(project.warehouse("results"))
