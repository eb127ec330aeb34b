"""Record the days of archived warehouses: jobs may not read them, so the identity of the stacks reads their rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lakewright_engine.model.errors import EngineError
from lakewright_spark.catalog import CatalogConfig, CatalogWarehouse
from lakewright_spark.catalog.auth import CatalogAuth, ClientCredentialsAuth, NoAuth, TokenAuth, TokenFileAuth
from lakewright_spark.times import format_json_time
from pydantic import ValidationError

from lakewright.costs.compute_collection import Record
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.deletions.archive_run import open_project
from lakewright.drift.session import ScanSession
from lakewright.drift.stack_providers import create_resolver
from lakewright.environment.loading import load_environment
from lakewright.errors import LakewrightError
from lakewright.fleet.states import StateReader, state_reader
from lakewright.lakekeeper.api.connection.auth import Resolve
from lakewright.lakekeeper.api.connection.client import ClientPool
from lakewright.lakekeeper.api.connection.server import (
    NoServerAuth,
    ServerClientCredentialsAuth,
    ServerRef,
    ServerTokenAuth,
    ServerTokenFileAuth,
    require_tls,
)
from lakewright.lakekeeper.archive import archive_records
from lakewright.lakekeeper.archive.archive_records import ArchiveRecord
from lakewright.ownership.mark import format_stack
from lakewright.restrictions.drift_notes import keeps_removed_data
from lakewright.restrictions.reading import find_record
from lakewright.validation.documents import as_mapping

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.fleet.selection import SelectedStack

COMMAND = "record-archives"
"""The command of `lakewright-spark`."""


@dataclass
class StackArchives:
    """The archived warehouses of a stack, and the days that a run recorded."""

    stack: SelectedStack
    project_id: str = ""
    archives: list[ArchiveRecord] = field(default_factory=list[ArchiveRecord])
    days: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Number of added rows by warehouse."""
    problem: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {"stack": self.stack.name, "days": self.days, "problem": self.problem}


def record_archives(
    project: PulumiProject, selected: Sequence[SelectedStack], record: Record, *, reader: StateReader | None = None
) -> list[StackArchives]:
    """Add a row for each day of the archived warehouses of stacks to `ops.daily_usage` of their first warehouse.

    Archives whose purge has begun are left out: their tables may be missing.

    Args:
        project: The project of the stacks.
        selected: The stacks. Stacks without archived warehouses, and destroyed stacks, are left out.
        record: Writes the rows with the identity of the tenants' jobs.
        reader: Reads the states; the reader of the project's backend if omitted.
    """
    states, session = reader or state_reader(project), ScanSession(project)
    try:
        listed_stacks = [*session.map(lambda stack: _list_archives(session, states, stack), selected)]
        stacks = [archives for archives in listed_stacks if archives.archives or archives.problem]
        with tempfile.TemporaryDirectory(prefix="lakewright-") as folder:
            _record(session, stacks, record, Path(folder))
    finally:
        session.close()
    return stacks


def _list_archives(session: ScanSession, states: StateReader, stack: SelectedStack) -> StackArchives:
    archives = StackArchives(stack)
    try:
        tenant_record = find_record(states.read(stack.name).resources)
        is_shared = as_mapping(stack.spec.get("project")).get("shared") is True
        if not is_shared and keeps_removed_data(tenant_record or {}):
            with closing(ClientPool(shared=session.clients)) as clients:
                _read_archives(session, clients, archives)
    except (LakewrightError, UnresolvedCredentialError, EngineError) as error:
        archives.problem = f"archived warehouses could not be read: {error}"
    return archives


def _read_archives(session: ScanSession, clients: ClientPool, archives: StackArchives) -> None:
    """Read the archives of a stack from its server, without archives whose purge has begun."""
    opened = open_project(session, clients, archives.stack)
    if opened is None:
        return
    client, archives.project_id = opened
    owner = format_stack(session.project.name, archives.stack.name)
    announcements = archive_records.list_cached_announcements(client, archives.project_id)
    begun_purges = {warehouse_id for warehouse_id, entry in announcements.items() if entry.has_begun}
    archives.archives = [
        archive
        for archive in archive_records.list_cached_archives(client, archives.project_id)
        if archive.mark is not None and archive.mark.stack == owner and archive.warehouse_id not in begun_purges
    ]


def _record(session: ScanSession, stacks: Sequence[StackArchives], record: Record, folder: Path) -> None:
    """Record the days of all archives with one command, and note its problems."""
    documents: dict[str, dict[str, Any]] = {}
    for archives in stacks:
        if archives.archives:
            try:
                documents[archives.stack.name] = _build_document(session, archives, folder)
            except (LakewrightError, UnresolvedCredentialError, EngineError, ValidationError) as error:
                archives.problem = f"archived warehouses could not be read: {error}"
    if not documents:
        return
    file = folder / "archives.json"
    file.write_text(json.dumps(documents), encoding="utf-8")
    by_name = {archives.stack.name: archives for archives in stacks}
    for report in record((COMMAND, str(file)), [by_name[name].stack for name in documents]):
        by_name[report.stack.name].days = as_mapping(report.report.get("days"))
        by_name[report.stack.name].problem = report.problem


def _build_document(session: ScanSession, archives: StackArchives, folder: Path) -> dict[str, Any]:
    """Return how to read the archived warehouses of a stack: at the endpoint that the stacks send their token to."""
    stack = archives.stack
    server = load_environment(session.project, stack.environment).lakekeeper.reference
    by_name = {archive.mark.warehouse: archive for archive in archives.archives if archive.mark}
    config = CatalogConfig(
        tenant=stack.tenant,
        uri=f"{server.endpoint}/catalog",
        project_id=archives.project_id,
        auth=make_catalog_auth(server, create_resolver(session, stack.name), folder / f"{stack.name}.secret"),
        ca_bundle=server.ca_bundle,
        warehouses=[CatalogWarehouse(name=name, id=archive.warehouse_id) for name, archive in by_name.items()],
    )
    times = {name: format_json_time(archive.archived_at) for name, archive in by_name.items()}
    return {"config": config.model_dump(mode="json"), "archived_at": times}


def make_catalog_auth(server: ServerRef, resolve_secret: Resolve, file: Path) -> CatalogAuth:
    """Return the authentication of a server's `auth` for `lakewright-spark`, which renews its tokens itself.

    Args:
        server: The server and how to authenticate.
        resolve_secret: Returns the secret behind a reference.
        file: File for the secret, which only this user can read. The caller deletes it.

    Raises:
        InsecureEndpointError: A token or secret would be sent to another machine without TLS.
    """
    require_tls(server)
    match auth := server.auth:
        case NoServerAuth():
            return NoAuth()
        case ServerTokenFileAuth(path=path):
            return TokenFileAuth(kind="token-file", path=path)
        case ServerTokenAuth(token=reference):
            return TokenAuth(kind="token", token=_write_secret(file, resolve_secret(reference)))
        case ServerClientCredentialsAuth():
            return ClientCredentialsAuth(
                kind="client-credentials",
                token_url=auth.token_url,
                client_id=auth.client_id,
                client_secret=_write_secret(file, resolve_secret(auth.client_secret)),
                scope=auth.scope,
                audience=auth.audience,
            )


def _write_secret(file: Path, secret: str) -> str:
    """Write a secret to a new file, and return its reference."""
    file.touch(mode=0o600, exist_ok=False)
    file.write_text(secret, encoding="utf-8")
    return f"file:{file}"
