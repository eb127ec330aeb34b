"""`lakewright doctor` compares the settings of the cluster's DNS with its pods, over HTTP."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml
from lakewright.cli import main
from lakewright.doctor.cluster_dns import check_dns
from lakewright.doctor.services import check_services
from lakewright.environment.cluster import Cluster
from lakewright.environment.environment import Environment

from tests.platform_documents import production

PODS: dict[tuple[str, str], int] = {}
"""Number of pods by namespace and label selector."""
CONTAINERS: dict[str, dict[str, Any]] = {
    "kube-system": {
        "ports": [
            {"name": "dns", "protocol": "UDP", "containerPort": 53},
            {"name": "dns-tcp", "protocol": "TCP", "containerPort": 53},
            {"name": "metrics", "protocol": "TCP", "containerPort": 9153},
        ],
        "args": ["-localip", "169.254.20.11,10.96.0.10", "-conf", "/etc/Corefile"],
    },
    "openshift-dns": {"ports": [{"name": "dns", "protocol": "UDP", "containerPort": 5353}]},
}
"""Ports and arguments of the pods, by namespace. The check reads `-localip` from pods of NodeLocal DNSCache only."""


class ApiServer(BaseHTTPRequestHandler):
    """Returns lists of pods as a cluster does."""

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        namespace = url.path.split("/")[-2]
        count = PODS.get((namespace, parse_qs(url.query)["labelSelector"][0]), 0)
        if count < 0:
            self.send_error(403)
            return
        items: list[dict[str, Any]] = [
            {"metadata": {"name": f"pod-{number}"}, "spec": {"containers": [{"name": "dns"} | CONTAINERS[namespace]]}}
            for number in range(count)
        ]
        body = json.dumps({"kind": "PodList", "apiVersion": "v1", "items": items}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments: object) -> None:
        """Print nothing."""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), ApiServer)
    Thread(target=server.serve_forever, args=[0.02], daemon=True).start()
    file = tmp_path / "config"
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "users": [{"name": "test", "user": {}}],
    }
    file.write_text(yaml.safe_dump(config))
    # The client reads the variable when it is imported.
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(file))
    PODS.clear()
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("pods", "dns", "state", "text"),
    [
        ({("kube-system", "k8s-app=kube-dns"): 2}, {}, "ok", "2 pods in kube-system"),
        ({("openshift-dns", "dns=default"): 3}, {}, "missing", "openshift-dns, port 5353"),
        (
            {("openshift-dns", "dns=default"): 3},
            {"namespace": "openshift-dns", "labels": {"dns": "default"}, "port": 5353},
            "ok",
            "3 pods in openshift-dns",
        ),
        (
            {("kube-system", "k8s-app=kube-dns"): 2, ("kube-system", "k8s-app=node-local-dns"): 4},
            {},
            "missing",
            "node_caches: [169.254.20.11]",
        ),
        (
            {("kube-system", "k8s-app=kube-dns"): 2, ("kube-system", "k8s-app=node-local-dns"): 4},
            {"node_caches": ["169.254.20.11"]},
            "ok",
            "2 pods",
        ),
        (
            {("kube-system", "k8s-app=kube-dns"): 2, ("kube-system", "k8s-app=node-local-dns"): 4},
            {"node_caches": ["169.254.20.10"]},
            "missing",
            "node_caches: [169.254.20.11]",
        ),
        (
            {("openshift-dns", "dns=default"): 3},
            {"namespace": "openshift-dns", "labels": {"dns": "default"}},
            "missing",
            "set `kubernetes.dns.port: 5353`",
        ),
    ],
)
@pytest.mark.usefixtures("kubeconfig")
def test_dns_of_the_cluster_is_compared(
    pods: dict[tuple[str, str], int], dns: dict[str, Any], state: str, text: str
) -> None:
    PODS.update(pods)

    (finding,) = check_dns(Cluster.model_validate({"dns": dns}), "the environment")

    assert finding.state == state
    assert text in f"{finding.result} {finding.fix}"


@pytest.mark.parametrize(
    ("arguments", "fix"),
    [
        (["--localip=169.254.25.10"], "node_caches: [169.254.25.10]"),
        (["-localip", "169.254.25.10, 10.96.0.10,"], "node_caches: [169.254.25.10]"),
        (["-localip", "$(NODE_LOCAL_IP)"], "node_caches: [169.254.20.10]"),
        ([], "node_caches: [169.254.20.10]"),
    ],
)
@pytest.mark.usefixtures("kubeconfig")
def test_forms_of_the_addresses_of_caches(arguments: list[str], fix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CONTAINERS["kube-system"], "args", arguments)
    PODS.update({("kube-system", "k8s-app=kube-dns"): 2, ("kube-system", "k8s-app=node-local-dns"): 4})

    (finding,) = check_dns(Cluster(), "the environment")

    assert fix in finding.fix


@pytest.mark.usefixtures("kubeconfig")
def test_doctor_checks_the_dns() -> None:
    PODS["kube-system", "k8s-app=kube-dns"] = 2
    lakekeeper = {"endpoint": "http://127.0.0.1:9", "trial": True}
    environment = Environment.model_validate({"lakekeeper": lakekeeper, "kubernetes": {"dns": {"port": 5353}}})

    findings = {finding.subject: finding for finding in check_services(environment)}

    assert findings["Kubernetes DNS"].fix == "set `kubernetes.dns.port: 53`"


PROJECT = "name: catalog-server\nruntime: python\nstackConfigDir: stacks\n"


def _write_platform(folder: Path, kubernetes: dict[str, Any], *, key: str = "catalog-server:spec") -> None:
    """Write a project of a platform with the stack `prod`, whose spec lies in its folder of stacks."""
    (folder / "Pulumi.yaml").write_text(PROJECT)
    spec = production() | {"kubernetes": kubernetes}
    (folder / "stacks").mkdir()
    (folder / "stacks/Pulumi.prod.yaml").write_text(yaml.safe_dump({"config": {key: spec}}))


@pytest.mark.usefixtures("kubeconfig")
def test_doctor_checks_the_dns_of_a_platform(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PODS["openshift-dns", "dns=default"] = 2
    _write_platform(tmp_path, {"dns": {"namespace": "openshift-dns", "labels": {"dns": "default"}}})

    with contextlib.chdir(tmp_path), pytest.raises(SystemExit) as exited:
        main(["doctor", "--stack", "prod", "--json"])

    findings = {finding["subject"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert exited.value.code == 1
    assert findings["Kubernetes DNS"]["fix"] == "set `kubernetes.dns.port: 5353`"
    assert "Lakekeeper" not in findings


@pytest.mark.parametrize(
    ("kubernetes", "path"), [({"dns": {"port": 70000}}, "kubernetes.dns.port"), ({"dsn": {}}, "kubernetes.dsn")]
)
def test_doctor_refuses_mistakes_of_a_platform(
    kubernetes: dict[str, Any], path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _write_platform(tmp_path, kubernetes)

    with contextlib.chdir(tmp_path), pytest.raises(SystemExit) as exited:
        main(["doctor", "--stack", "prod"])

    error = capsys.readouterr().err
    assert exited.value.code == 1
    assert path in error
    assert "stacks/Pulumi.prod.yaml" in error


@pytest.mark.parametrize("key", ["catalog-server:spec", "catalog-server:config:spec", "spec"])
def test_mistake_of_a_platform_has_a_line(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write_platform(tmp_path, {"dns": {"port": 70000}}, key=key)
    lines = (tmp_path / "stacks/Pulumi.prod.yaml").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "port: 70000" in line)

    with contextlib.chdir(tmp_path), pytest.raises(SystemExit):
        main(["doctor", "--stack", "prod"])

    assert f"Pulumi.prod.yaml:{number}:" in capsys.readouterr().err


@pytest.mark.parametrize("key", ["spec", "catalog-server:spec"])
@pytest.mark.parametrize("field", ["value", "default"])
def test_mistake_in_a_default_has_a_line(
    key: str, field: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = production() | {"kubernetes": {"dns": {"port": 70000}}}
    default = {"config": {key: {field: spec}}}
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(yaml.safe_load(PROJECT) | default))
    (tmp_path / "stacks").mkdir()
    lines = (tmp_path / "Pulumi.yaml").read_text().splitlines()
    number = next(number for number, line in enumerate(lines, 1) if "port: 70000" in line)

    with contextlib.chdir(tmp_path), pytest.raises(SystemExit):
        main(["doctor", "--stack", "prod"])

    assert f"Pulumi.yaml:{number}:" in capsys.readouterr().err


@pytest.mark.usefixtures("kubeconfig")
@pytest.mark.parametrize("is_default", [True, False])
def test_doctor_reads_a_platform_as_pulumi_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_default: bool
) -> None:
    """The spec is a default of the project, or the JSON text of `pulumi config set`."""
    PODS["openshift-dns", "dns=default"] = 2
    spec = production() | {"kubernetes": {"dns": {"namespace": "openshift-dns", "labels": {"dns": "default"}}}}
    default = {"config": {"spec": {"value": spec}}} if is_default else {}
    (tmp_path / "Pulumi.yaml").write_text(yaml.safe_dump(yaml.safe_load(PROJECT) | default))
    (tmp_path / "stacks").mkdir()
    config = {} if is_default else {"config": {"catalog-server:spec": json.dumps(spec)}}
    (tmp_path / "stacks/Pulumi.prod.yaml").write_text(yaml.safe_dump(config))

    with contextlib.chdir(tmp_path), pytest.raises(SystemExit):
        main(["doctor", "--stack", "prod", "--json"])

    findings = {finding["subject"]: finding for finding in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["Kubernetes DNS"]["fix"] == "set `kubernetes.dns.port: 5353`"


@pytest.mark.usefixtures("kubeconfig")
def test_identity_without_rights_finds_nothing() -> None:
    PODS["kube-system", "k8s-app=kube-dns"] = -1

    assert check_dns(Cluster(), "the environment") == []
