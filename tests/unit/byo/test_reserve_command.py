"""The policies that `lakewright byo reserve` prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lakewright.cli.commands.byo import reserve

SPEC = """config:
  lakewright:tenant:
    version: 1
    environment: production
    name: acme
    owner: data@example.org
    storage: {main: {backend: existing, bucket: acme-own, region: eu-west-1, external_id: 0123456789abcdef}}
    warehouses: [{name: executions}]
"""


@pytest.mark.parametrize("tagged", [False, True])
def test_trust_allows_the_tags_of_the_catalogs_sessions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, tagged: bool
) -> None:
    """EKS Pod Identity tags sessions, and STS refuses a role that does not allow it."""
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{tmp_path / 'state'}")
    (tmp_path / "Pulumi.yaml").write_text("name: lake\nruntime: python\n")
    (tmp_path / "Pulumi.acme.yaml").write_text(SPEC)
    (tmp_path / "environments").mkdir()
    (tmp_path / "environments" / "production.yaml").write_text(
        "lakekeeper: {endpoint: 'https://lakekeeper.example', principal_arn: 'arn:aws:iam::123456789012:role/catalog',"
        f" principal_has_session_tags: {str(tagged).lower()}}}\n"
    )

    reserve("acme", directory=tmp_path)

    trust = json.loads(capsys.readouterr().out)["trust_policy"]
    actions = [statement["Action"] for statement in trust["Statement"]]
    assert ("sts:TagSession" in actions) is tagged
