"""Evaluate the checks of many tenants concurrently. An unreachable tenant does not hide other tenants' results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

from lakewright_spark.times import format_json_time

from lakewright.client_access.check import VerifyError
from lakewright.credentials.references import UnresolvedCredentialError
from lakewright.data_checks.registry import CHECKS
from lakewright.data_checks.result import CheckResult, DataCheckError, StackChecks, Verdict
from lakewright.data_checks.session import CheckSession, CheckTarget
from lakewright.lakekeeper.api.connection.client import Client, ClientPool
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.spec.data_check import DataCheck


def run_checks(
    targets: Sequence[CheckTarget], *, parallel: int = 16, clock: Callable[[], datetime] = lambda: datetime.now(UTC)
) -> list[StackChecks]:
    """Return the results of each tenant, in the order of the tenants.

    Args:
        targets: The tenants.
        parallel: Number of tenants that are checked concurrently.
        clock: Returns the time in UTC.
    """
    pool = _Clients()
    try:
        with ThreadPoolExecutor(max(1, parallel)) as executor:
            pending = [executor.submit(_run, target, pool, clock()) for target in targets]
            return [future.result() for future in pending]
    finally:
        pool.close()


class _Clients:
    """One client for each server and each set of credentials. Thread-safe."""

    def __init__(self) -> None:
        self._pools: dict[object, ClientPool] = {}
        self._clients: list[Client] = []
        self._lock = threading.Lock()

    def get(self, target: CheckTarget) -> Client:
        reference = target.server
        secrets = [getattr(reference.auth, name, "") for name in ("token", "client_secret")]
        # References of environments may name the stack's configuration, so other stacks have other secrets.
        key = target.stack if any(str(secret).startswith("config:") for secret in secrets) else None
        with self._lock:
            pool = self._pools.setdefault(key, ClientPool())
            client = pool.get(reference, target.resolve)
            self._clients.append(client)
            return client

    def close(self) -> None:
        for client in {id(client): client for client in self._clients}.values():
            client.close()


def _run(target: CheckTarget, clients: _Clients, now: datetime) -> StackChecks:
    results = StackChecks(target.stack, target.spec.name, target.spec.environment)
    try:
        session = CheckSession(target, clients.get(target), now)
        try:
            _add_results(session, results)
        finally:
            session.close()
    except _list_expected_errors() as error:
        results.problems.append(" ".join(str(error).split()))
    except Exception as error:  # noqa: BLE001 - a defect for one tenant must not hide other tenants' results
        results.problems.append(f"unexpected error: {type(error).__name__}: {' '.join(str(error).split())}")
    return results


def _add_results(session: CheckSession, results: StackChecks) -> None:
    """Add the results of a tenant's checks."""
    for index, check in enumerate(session.target.spec.checks):
        kind = CHECKS[type(check)]
        for verdict in _evaluate(check, session):
            results.checks.append(
                CheckResult(
                    f"checks.{index}",
                    kind.title(check),
                    verdict.assertion,
                    verdict.expected,
                    verdict.finding,
                    verdict.outcome,
                    format_json_time(session.now.replace(microsecond=0)),
                    session.identity,
                )
            )


def _evaluate(check: DataCheck, session: CheckSession) -> Iterator[Verdict]:
    try:
        yield from CHECKS[type(check)].evaluate(check, session)
    except _list_expected_errors() as error:
        yield Verdict("evaluate", "a response of the servers", " ".join(str(error).split()), "not evaluated")


def _list_expected_errors() -> tuple[type[Exception], ...]:
    """Return the errors that keep a check from being evaluated. Other errors are defects of this program."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    errors: Any = (DataCheckError, LakekeeperError, VerifyError, UnresolvedCredentialError, BotoCoreError, ClientError)
    return errors
