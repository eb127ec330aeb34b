"""`lakewright doctor` sends a pod's token to Lakekeeper, and names the audience to set where it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from kubernetes.config import kube_config  # pyright: ignore[reportMissingTypeStubs]
from lakewright.doctor import Finding
from lakewright.doctor.token_audience import check_pod_tokens
from lakewright.environment.environment import Environment
from lakewright_sandbox.cluster.app import SandboxCluster, kubeconfig
from lakewright_sandbox.in_process import serve
from lakewright_sandbox.lakekeeper.app import create_app
from lakewright_sandbox.lakekeeper.protocol.settings import Settings

Diagnose = Callable[..., Finding]


@pytest.fixture
def diagnose(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Diagnose]:
    """Return a function that returns the doctor's finding for a server with audiences, and an environment."""
    with ExitStack() as stack:
        cluster = stack.enter_context(serve(SandboxCluster().app()))
        (tmp_path / "kubeconfig").write_text(kubeconfig(cluster))
        monkeypatch.setattr(kube_config, "KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "kubeconfig"))

        def run(audiences: tuple[str, ...], issuer: str = cluster, **environment: Any) -> Finding:
            settings = Settings(
                database=f"sqlite:///{tmp_path / 'lakekeeper.db'}",
                kubernetes_issuer=issuer,
                kubernetes_audiences=audiences,
            )
            endpoint = stack.enter_context(serve(create_app(settings)))
            auth = {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"}
            server = {"endpoint": endpoint, "jobs_auth": auth, **environment}
            (finding,) = check_pod_tokens(Environment.model_validate({"lakekeeper": server}), "tenant-acme")
            return finding

        yield run


@pytest.mark.parametrize(
    ("audiences", "environment"),
    [
        (("lakekeeper",), {}),
        (("prod", "other"), {"jobs_token_audience": "prod"}),
        ((), {"jobs_token_audience": None}),
    ],
    ids=["default", "named", "cluster's own"],
)
def test_matching_audience_is_fine(diagnose: Diagnose, audiences: tuple[str, ...], environment: Any) -> None:
    finding = diagnose(audiences, **environment)

    assert finding.state == "ok", finding
    assert "system:serviceaccount:default:default" in finding.result


def test_server_without_audiences_is_reported(diagnose: Diagnose) -> None:
    finding = diagnose(())

    assert finding.state == "missing"
    assert "audience `lakekeeper` is refused" in finding.result
    assert finding.result.endswith("a token for the cluster's own audience is accepted")
    assert "lakekeeper.jobs_token_audience: null" in finding.fix
    assert "LAKEKEEPER__KUBERNETES_AUTHENTICATION_AUDIENCE=lakekeeper on the server" in finding.fix


def test_environment_without_the_servers_audience_is_reported(diagnose: Diagnose) -> None:
    finding = diagnose(("lakekeeper",), jobs_token_audience=None)

    assert (finding.state, finding.fix) == (
        "missing",
        "set `lakekeeper.jobs_token_audience: lakekeeper` in the environment",
    )


def test_server_that_trusts_another_cluster_is_reported(diagnose: Diagnose) -> None:
    with serve(SandboxCluster().app()) as elsewhere:
        finding = diagnose(("lakekeeper",), issuer=elsewhere)

    assert finding.state == "missing"
    assert "LAKEKEEPER__ENABLE_KUBERNETES_AUTHENTICATION=true" in finding.fix


def test_pods_without_service_account_tokens_are_skipped() -> None:
    assert check_pod_tokens(Environment.model_validate({"lakekeeper": {"endpoint": "https://l.example"}}), "n") == []
