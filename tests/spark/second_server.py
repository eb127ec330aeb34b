"""A second Lakekeeper on the sandbox's storage: each server of the sandbox has the UUID of a table once."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings
from projects import Project, post


@contextmanager
def serve_project(project: Project, folder: Path) -> Generator[Project]:
    """Yield a project of a second server during the block; on real servers, a project of the same server.

    Real servers accept the UUID of a table once in each warehouse.

    Args:
        project: A project of the first server.
        folder: Folder of the second server's database.
    """
    sandbox = project.sandbox
    if project.real:
        yield Project(project.server, sandbox, project.real)
        return
    settings = Settings(
        database=f"sqlite:///{folder / 'second.db'}",
        aws_endpoint=sandbox.aws.endpoint,
        credentials_file=sandbox.credentials_file,
        aws_system_identity=True,
    )
    with (
        serve(create_app(settings)) as endpoint,
        httpx.Client(base_url=endpoint, timeout=60) as server,
    ):
        post(server, "/management/v1/bootstrap", {"accept-terms-of-use": True})
        addresses = {"endpoint": endpoint, "catalog_uri": f"{endpoint}/catalog"}
        catalog = sandbox.lakekeeper.model_copy(update=addresses)
        yield Project(server, sandbox.model_copy(update={"lakekeeper": catalog}))
