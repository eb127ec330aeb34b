"""Run the container of the rendered CronJob locally, with its files, variables and command line."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from authenticating_proxy import AuthenticatingProxy, serve_proxy
from lakewright.kubernetes.jobs_identity import JobsSecret, PodIdentity
from lakewright.kubernetes.maintenance import manifests
from lakewright.kubernetes.runtimes import catalog_files
from lakewright.spec import TenantSpec, parse_spec
from lakewright_sandbox.runtime.state import Sandbox
from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import ClientCredentialsAuth

from tests.spark.maintenance.conftest import create_warehouse

SECRET = JobsSecret(name="lakekeeper-jobs", key="client-secret")
SECRETS = {"lakekeeper-jobs": {"client-secret": "s3cr3t"}}


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[AuthenticatingProxy]:
    with serve_proxy(AuthenticatingProxy(sandbox.lakekeeper.endpoint)) as running:
        yield running


@pytest.mark.parametrize(
    "reference", [pytest.param("env:JOBS_SECRET", marks=pytest.mark.long), "file:/var/run/secrets/lakekeeper/secret"]
)
def test_rendered_command_succeeds(
    sandbox: Sandbox, catalog_config: CatalogConfig, proxy: AuthenticatingProxy, tmp_path: Path, reference: str
) -> None:
    warehouse = create_warehouse(
        sandbox, catalog_config, f"cron-{uuid.uuid4().hex[:6]}", sandbox.aws.endpoint, {"type": "hard"}
    )
    auth = ClientCredentialsAuth(
        kind="client-credentials", token_url=proxy.token_url, client_id="job", client_secret=reference
    )
    changes = {"uri": proxy.catalog_uri, "auth": auth, "warehouses": [warehouse]}
    catalog = catalog_config.model_copy(update=changes)
    tenant = _tenant()
    assert tenant.maintenance
    (cron,) = tenant.maintenance.cron_jobs()
    spec = manifests.cron_job_spec(
        tenant, tenant.maintenance, cron, catalog, "example/jobs", identity=PodIdentity(SECRET)
    )
    rendered = [spec, manifests.config_map(tenant, catalog_files(catalog))]
    assert "s3cr3t" not in json.dumps(rendered)

    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    done = _run(pod, {rendered[1]["metadata"]["name"]: rendered[1]["data"]}, tmp_path)
    # The warehouse has no tables except those in `ops`, which do not count: no JVM starts.
    assert (done.returncode, done.stdout) == (0, "0 tables: nothing is due\n"), done.stderr
    assert proxy.grants, "the credential was used"


def _tenant() -> TenantSpec:
    return parse_spec(
        {
            "version": 1,
            "environment": "production",
            "name": "acme",
            "owner": "data@acme.example",
            "storage": {"main": {"backend": "aws", "bucket": "acme-lakehouse"}},
            "warehouses": [{"name": "executions"}],
            "maintenance": {"schedule": "0 2 * * *", "deadline": "10m", "parallel": 2, "jobs": ["retention"]},
        },
        "spec",
    )


def _run(
    pod: dict[str, Any], config_maps: Mapping[str, Mapping[str, str]], root: Path
) -> subprocess.CompletedProcess[str]:
    """Run the pod's container with a folder as its root."""
    (container,) = pod["containers"]
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    places = [mount["mountPath"] for mount in container["volumeMounts"]]
    for mount in container["volumeMounts"]:
        folder = root / mount["mountPath"].lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in _files(volumes[mount["name"]], config_maps).items():
            (folder / name).write_text(text)

    def local_path(text: str) -> str:
        return f"{root}{text}" if text.startswith(tuple(places)) else text

    # The catalog file names the path of the credential in the container.
    for file in (root / "etc/lakewright").iterdir():
        file.write_text(file.read_text().replace("file:/var/run", f"file:{root}/var/run"))
    pod_variables = {
        variable["name"]: local_path(variable["value"]) if "value" in variable else _secret(variable)
        for variable in container["env"]
    }
    command = [*container["command"], *map(local_path, container["args"])]
    host_variables = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    return subprocess.run(command, env=host_variables | pod_variables, capture_output=True, text=True, check=False)


def _files(volume: dict[str, Any], config_maps: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    if "configMap" in volume:
        return config_maps[volume["configMap"]["name"]]
    if "secret" in volume:
        secret = SECRETS[volume["secret"]["secretName"]]
        return {item["path"]: secret[item["key"]] for item in volume["secret"]["items"]}
    return {}


def _secret(variable: dict[str, Any]) -> str:
    key_reference = variable["valueFrom"]["secretKeyRef"]
    return SECRETS[key_reference["name"]][key_reference["key"]]
