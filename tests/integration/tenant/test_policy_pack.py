"""The policy pack `infra/policy` under the Pulumi CLI: the demo tenant passes, and each rule is reported."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright_policy.registry import RULES, STACK_RULES

from tests.tenant_project import REPOSITORY, Tenant

PACK = REPOSITORY / "infra" / "policy"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture
def policy_pack() -> str:
    """The pack, if its environment is set up."""
    if not (PACK / ".venv" / "bin" / "python").exists():
        pytest.skip("the policy pack has no environment; run `make policy`")
    return str(PACK)


@pytest.mark.pulumi_cli
def test_demo_tenant_passes(
    make_tenant: Callable[..., Tenant], attached_providers: dict[str, str], policy_pack: str
) -> None:
    demo = yaml.safe_load((REPOSITORY / "demo" / "Pulumi.demo.yaml").read_text())["config"]["lakewright:tenant"]
    tenant = make_tenant(**{part: demo[part] for part in ("owner", "warehouses", "computing_units")})
    tenant.environ = attached_providers

    config = tenant.folder / "policies.json"
    config.write_text(json.dumps({"static-credential": {"trial": True}, "unprotected-warehouse": {"trial": True}}))
    options = ("--engine", "pulumi", "--policy-pack", policy_pack, "--policy-pack-config", str(config))

    tenant.output("preview", *options)
    tenant.output("up", "--yes", *options)

    printed = "".join(tenant.outputs)
    assert "error: " not in printed
    assert f"warning: {tenant.name}-notebook: policy image-without-digest" in printed, "images of trials have tags"


@pytest.mark.pulumi_cli
def test_each_rule_is_reported(
    make_tenant: Callable[..., Tenant], attached_providers: dict[str, str], policy_pack: str
) -> None:
    tenant = make_tenant()
    shutil.copy(Path(__file__).with_name("policy_violations.py"), tenant.folder / "__main__.py")
    tenant.environ = {
        **attached_providers,
        "SANDBOX_S3": tenant.sandbox.aws.endpoint,
        "SANDBOX_CREDENTIALS": str(tenant.sandbox.credentials_file),
        "RENDER_TO": str(tenant.folder / "rendered"),
    }

    completed = tenant.run("preview", "--engine", "pulumi", "--policy-pack", policy_pack)

    assert completed.returncode != 0
    for rule in RULES:
        severity = "warning" if rule.is_warning else "error"
        assert any(
            line.startswith(f"{severity}: ") and f"policy {rule.name}: " in line
            for line in completed.stderr.splitlines()
        ), rule.name
    for rule in STACK_RULES:
        assert f"error: bare: policy {rule.name}: " in completed.stderr


@pytest.mark.parametrize("variable", [True, False], ids=["variable", "option"])
def test_embedded_engine_refuses_policy_packs(make_tenant: Callable[..., Any], *, variable: bool) -> None:
    tenant = make_tenant()
    if variable:
        tenant.environ = {"PULUMI_OPTION_POLICY_PACK": str(PACK)}

    text = tenant.error("preview", "--engine", "embedded", *(() if variable else ("--policy-pack", str(PACK))))

    name = "PULUMI_OPTION_POLICY_PACK" if variable else "--policy-pack"
    assert f"error: {name}: the embedded engine does not run policy packs" in text
    assert "use --engine pulumi" in text
