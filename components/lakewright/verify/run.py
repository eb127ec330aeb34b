"""Run the probes. A probe that cannot run is a check that does not hold. Probes' objects are always removed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.client_access.check import Attempt, Note, VerifyCheck, VerifyError, expect_allowed
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.verify.registry import PROBES, IdentityProbe, Probe, Results, TenantProbe
from lakewright.verify.scheduling import PARALLEL, ProbeRun, execute_all
from lakewright.verify.session.sessions import IdentitySession, TenantSession, WarehouseSession
from lakewright.verify.session.subjects import ProbeIdentity

CLEAN_UP = "clean-up"
"""Name of the check that probe namespaces were removed; only failures are listed."""


@dataclass
class VerifyReport:
    """All checks of a run."""

    checks: list[VerifyCheck] = field(default_factory=list[VerifyCheck])
    notes: list[str] = field(default_factory=list[str])

    @property
    def holds(self) -> bool:
        """Return whether all checks hold."""
        return bool(self.checks) and all(check.holds for check in self.checks)

    @property
    def failed_probes(self) -> list[str]:
        """Return the names of the probes with a check that does not hold."""
        return list(dict.fromkeys(check.probe for check in self.checks if not check.holds))


@dataclass(frozen=True)
class _RunSubject:
    """Identity and warehouse of a run of a probe."""

    identity: str = ""
    warehouse: str = ""


def run_probes(
    tenant: TenantSession,
    subjects: Sequence[ProbeIdentity],
    probes: Sequence[Probe] = PROBES,
    parallel: int = PARALLEL,
) -> VerifyReport:
    """Run probes with each identity of a tenant, and remove the objects that they made.

    Args:
        tenant: The tenant.
        subjects: Its identities.
        probes: The probes, in the order of the report.
        parallel: Number of probes that run concurrently.
    """
    report = VerifyReport(notes=tenant.not_probed)
    services = {warehouse.name: warehouse.storage for warehouse in tenant.config.warehouses}
    deployed = {name for name, service in services.items() if service == "s3"}
    for name in dict.fromkeys(name for subject in subjects for name in subject.warehouses if name not in deployed):
        evidence = (
            f"warehouse {name} is on {services[name]}; `verify` tries storage on S3 only"
            if name in services
            else f"warehouse {name} is in the spec and not in the state; run `lakewright up`"
        )
        report.checks.append(
            _make_check("table", _RunSubject(warehouse=name), expect_allowed("write", "not proven", evidence))
        )
    identities = [
        IdentitySession(
            tenant,
            replace(subject, warehouses=tuple(name for name in subject.warehouses if name in deployed)),
            visible_warehouses=subject.warehouses,
        )
        for subject in subjects
    ]
    warehouses = {
        id(identity): [
            WarehouseSession(identity, tenant.config.warehouse(name)) for name in identity.subject.warehouses
        ]
        for identity in identities
    }
    expected = _list_expected_errors()
    runs = [
        (subject, ProbeRun(probe, start, expected))
        for probe in probes
        for subject, start in _list_runs(probe, tenant, identities, warehouses)
    ]
    try:
        execute_all([run for _, run in runs], parallel)
        for subject, run in runs:
            _collect(report, subject, run)
    finally:
        _clean_up(report, [session for identity in identities for session in warehouses[id(identity)]], parallel)
        tenant.s3.close()
    return report


def _list_runs(
    probe: Probe,
    tenant: TenantSession,
    identities: Sequence[IdentitySession],
    warehouses: dict[int, list[WarehouseSession]],
) -> Iterator[tuple[_RunSubject, Callable[[], Results]]]:
    """Yield the runs of a probe, each with its identity and warehouse."""
    if isinstance(probe, TenantProbe):
        yield _RunSubject(), lambda: probe.run(tenant)
        return
    for identity in identities:
        if isinstance(probe, IdentityProbe):
            yield _RunSubject(identity.subject.name), lambda identity=identity: probe.run(identity)
        else:
            for session in warehouses[id(identity)]:
                yield _to_run_subject(session), lambda session=session: probe.run(session)


def _to_run_subject(session: WarehouseSession) -> _RunSubject:
    return _RunSubject(session.identity.subject.name, session.warehouse.name)


def _collect(report: VerifyReport, subject: _RunSubject, run: ProbeRun) -> None:
    probe = run.probe.name
    for result in run.results:
        if isinstance(result, Note):
            if result.text not in report.notes:
                report.notes.append(result.text)
        else:
            report.checks.append(_make_check(probe, subject, result))
    if run.error is not None:
        report.checks.append(_make_not_run_check(probe, subject, run.error))


def _make_check(probe: str, subject: _RunSubject, attempt: Attempt) -> VerifyCheck:
    remedy = "" if attempt.result == attempt.expected else attempt.remedy
    return VerifyCheck(
        probe,
        subject.identity,
        subject.warehouse,
        attempt.attempt,
        attempt.expected,
        attempt.result,
        attempt.evidence,
        remedy,
    )


def _make_not_run_check(probe: str, subject: _RunSubject, error: BaseException) -> VerifyCheck:
    return _make_check(probe, subject, expect_allowed("run the probe", "not proven", " ".join(str(error).split())))


def _clean_up(report: VerifyReport, sessions: Sequence[WarehouseSession], parallel: int) -> None:
    """Drop the objects that the probes made, in all warehouses concurrently. Failures are checks that do not hold."""
    expected = _list_expected_errors()

    def drop(session: WarehouseSession) -> Exception | None:
        try:
            session.clean_up()
        except expected as error:
            return error
        return None

    with ThreadPoolExecutor(parallel, thread_name_prefix="verify") as pool:
        for session, error in zip(sessions, pool.map(drop, sessions), strict=True):
            if error is not None:
                report.checks.append(_make_not_run_check(CLEAN_UP, _to_run_subject(session), error))


def _list_expected_errors() -> tuple[type[Exception], ...]:
    """Return the errors that keep a probe from running. Other errors are defects of this program."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    errors: Any = (VerifyError, LakekeeperError, BotoCoreError, ClientError)
    return errors
