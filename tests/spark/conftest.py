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

from tests.real_servers import RealServers, leave_out


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


@pytest.fixture(scope="session")
def variant_columns(project: Project, catalog_config: CatalogConfig, real: RealServers | None) -> None:
    """Leave a test out on real servers that cannot read the type `variant`.

    Releases of Lakekeeper can. A build with the released crate `iceberg` 0.10 in place of Lakekeeper's fork cannot.
    """
    if real and not project.accepts_variant_columns(catalog_config.warehouses[0]):
        leave_out("this build of the server cannot read the type `variant`")
