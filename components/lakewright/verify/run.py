"""Run the probes. A probe that cannot run is a check that does not hold; what probes made is removed in any case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.verify.attempts.check import Attempt, Note, VerifyCheck, expect_allowed
from lakewright.verify.attempts.errors import VerifyError
from lakewright.verify.registry import PROBES, IdentityProbe, Probe, Results, TenantProbe
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
class _Who:
    """Identity and warehouse of a run of a probe."""

    identity: str = ""
    warehouse: str = ""


def run_probes(
    tenant: TenantSession, subjects: Sequence[ProbeIdentity], probes: Sequence[Probe] = PROBES
) -> VerifyReport:
    """Run probes with each identity of a tenant, and remove what they made."""
    report = VerifyReport()
    deployed = {warehouse.name for warehouse in tenant.config.warehouses}
    for name in dict.fromkeys(name for subject in subjects for name in subject.warehouses if name not in deployed):
        evidence = f"warehouse {name} is in the spec and not in the state; run `lakewright up`"
        report.checks.append(_check("table", _Who(warehouse=name), expect_allowed("write", "not proven", evidence)))
    identities = [
        IdentitySession(
            tenant, replace(subject, warehouses=tuple(name for name in subject.warehouses if name in deployed))
        )
        for subject in subjects
    ]
    warehouses = {
        id(identity): [
            WarehouseSession(identity, tenant.config.warehouse(name)) for name in identity.subject.warehouses
        ]
        for identity in identities
    }
    try:
        for probe in probes:
            for who, results in _results(probe, tenant, identities, warehouses):
                _collect(report, probe.name, who, results)
    finally:
        for identity in identities:
            for session in warehouses[id(identity)]:
                _clean_up(report, session)
        tenant.s3.close()
    return report


def _results(
    probe: Probe,
    tenant: TenantSession,
    identities: Sequence[IdentitySession],
    warehouses: dict[int, list[WarehouseSession]],
) -> Iterator[tuple[_Who, Callable[[], Results]]]:
    """Yield the runs of a probe, each with its identity and warehouse."""
    if isinstance(probe, TenantProbe):
        yield _Who(), lambda: probe.run(tenant)
        return
    for identity in identities:
        if isinstance(probe, IdentityProbe):
            yield _Who(identity.subject.name), lambda identity=identity: probe.run(identity)
        else:
            for session in warehouses[id(identity)]:
                yield _who(session), lambda session=session: probe.run(session)


def _who(session: WarehouseSession) -> _Who:
    return _Who(session.identity.subject.name, session.warehouse.name)


def _collect(report: VerifyReport, probe: str, who: _Who, results: Callable[[], Results]) -> None:
    try:
        for result in results():
            if isinstance(result, Note):
                if result.text not in report.notes:
                    report.notes.append(result.text)
            else:
                report.checks.append(_check(probe, who, result))
    except _failures() as error:
        report.checks.append(_not_run(probe, who, error))


def _check(probe: str, who: _Who, attempt: Attempt) -> VerifyCheck:
    return VerifyCheck(
        probe, who.identity, who.warehouse, attempt.attempt, attempt.expected, attempt.found, attempt.evidence
    )


def _not_run(probe: str, who: _Who, error: BaseException) -> VerifyCheck:
    return _check(probe, who, expect_allowed("run the probe", "not proven", " ".join(str(error).split())))


def _clean_up(report: VerifyReport, session: WarehouseSession) -> None:
    try:
        session.clean_up()
    except _failures() as error:
        report.checks.append(_not_run(CLEAN_UP, _who(session), error))


def _failures() -> tuple[type[Exception], ...]:
    """Return the errors that keep a probe from running. Other ones are defects of this program."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 # pyright: ignore[reportMissingTypeStubs]

    found: Any = (VerifyError, LakekeeperError, BotoCoreError, ClientError)
    return found
