"""Run the probes of `lakewright verify` in the process of a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from lakewright.cli.commands.verify import open_session
from lakewright.client_access.check import VerifyCheck
from lakewright.verify.registry import PROBES, Probe
from lakewright.verify.run import VerifyReport, run_probes
from lakewright.verify.scheduling import PARALLEL
from lakewright.verify.session.subjects import ProbeIdentity
from lakewright_spark.catalog import CatalogConfig

from tests.tenant_project import PASSPHRASE, Tenant

Verify = Callable[..., VerifyReport]


def make_verify(tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> Verify:
    """Return a function that runs probes of a tenant, all or those with the given names."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", (tenant.folder / "state").as_uri())
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    monkeypatch.chdir(tenant.folder)

    def run(
        *names: str,
        probes: Sequence[Probe] = PROBES,
        subjects: Sequence[ProbeIdentity] | None = None,
        config: CatalogConfig | None = None,
        parallel: int = PARALLEL,
    ) -> VerifyReport:
        session, default_subjects = open_session(tenant.name, tenant.folder)
        if config is not None:
            session = replace(session, config=config)
            visible = tuple(warehouse.name for warehouse in config.warehouses)
            default_subjects = [replace(subject, warehouses=visible) for subject in default_subjects]
        selected_probes = [probe for probe in probes if not names or probe.name in names]
        return run_probes(session, default_subjects if subjects is None else subjects, selected_probes, parallel)

    return run


def group_failed_checks(report: VerifyReport) -> dict[str, list[VerifyCheck]]:
    """Return the checks that do not hold, by probe."""
    failed_checks: dict[str, list[VerifyCheck]] = {}
    for check in report.checks:
        if not check.holds:
            failed_checks.setdefault(check.probe, []).append(check)
    return failed_checks
