"""The same tenant on the Pulumi CLI, with the sandbox's providers attached; the embedded engine goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

pytestmark = [pytest.mark.pulumi_cli, pytest.mark.timeout(600)]


def test_a_tenant_lives_on_the_cli_and_goes_on_in_the_embedded_engine(
    make_tenant: Callable[..., Any], attached: dict[str, str]
) -> None:
    tenant = make_tenant(computing_units=[{"name": "notebook", "runtime": "spark", "warehouse": "executions"}])
    tenant.environ = attached
    pulumi = ("--engine", "pulumi")

    tenant.told("up", "--yes", *pulumi)
    tenant.told("up", "--yes", "--expect-no-changes", *pulumi)
    tenant.told("preview", "--refresh", "--expect-no-changes", *pulumi)
    tenant.up("--expect-no-changes")
    tenant.verb("preview", "--refresh", "--expect-no-changes")
    tenant.told("preview", "--refresh", "--expect-no-changes", *pulumi)
    assert tenant.catalog("executions").list_namespaces() == [("results",)]
    tenant.told("destroy", "--yes", *pulumi)


def test_the_deletion_guard_stops_the_cli_too(make_tenant: Callable[..., Any], attached: dict[str, str]) -> None:
    tenant = make_tenant(warehouses=[{"name": "executions", "namespaces": ["results"], "deletion": "protect"}])
    tenant.environ = attached
    tenant.told("up", "--yes", "--engine", "pulumi")
    tenant.catalog("executions").create_table("results.flights", schema=pa.schema([("n", pa.int64())]))

    done = tenant.run("destroy", "--yes", "--engine", "pulumi")

    assert done.returncode != 0
    assert "flights" in done.stdout + done.stderr
    tenant.told("preview", "--refresh", "--expect-no-changes", "--engine", "pulumi")
