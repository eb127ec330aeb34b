"""A restart of the sandbox empties its S3 and IAM: the stack reports the loss and restores it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from lakewright_sandbox import lifecycle

pytestmark = [pytest.mark.timeout(300), pytest.mark.stand_in("restarts a sandbox")]


@pytest.mark.long
def test_restart_losses_are_reported_and_restored(make_tenant: Callable[..., Any], tmp_path: Path) -> None:
    folder = tmp_path / "own-sandbox"
    lifecycle.up(folder)
    try:
        tenant = make_tenant()
        tenant.environ = {"LAKEWRIGHT_SANDBOX": str(folder)}
        before = tenant.up()["outputs"]
        lifecycle.down(folder)
        lifecycle.up(folder)

        lost = tenant.verb("preview", "--refresh")
        healed = tenant.up("--refresh")

        made_again = {step["type"].rsplit(":", 1)[-1] for step in lost["steps"] if step["op"] == "create"}
        assert {"Bucket", "BucketPolicy", "BucketVersioning", "Role", "RolePolicy"} <= made_again
        assert not made_again & {"Project", "Warehouse", "Namespace", "ExternalId"}, "the catalog keeps its data"
        assert healed["outputs"] == before
        tenant.verb("preview", "--refresh", "--expect-no-changes")
    finally:
        lifecycle.down(folder)
