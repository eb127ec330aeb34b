"""Server versions: read from the server's info; unsupported ones are refused by name."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lakewright.lakekeeper.api.connection.errors import UnsupportedServerError
from lakewright.lakekeeper.api.connection.privileges import ObjectKind
from lakewright.lakekeeper.api.connection.versions import parse_server
from lakewright.lakekeeper.provider.inputs import require_supported
from lakewright.lakekeeper.warehouse.model import WarehouseArgs

AT = "http://lake.test"


@pytest.mark.parametrize(
    ("info", "version"),
    [
        ({"version": "0.11.6"}, (0, 11)),
        ({"version": "0.12.4", "lakekeeper-version": "0.12.4"}, (0, 12)),
        ({"lakekeeper-version": "v0.14.0-rc.1"}, (0, 14)),
        ({"version": "0.13.3", "queues": ["tabular_expiration", "tabular_purge"]}, (0, 13)),
        ({"version": "0.13.1", "queues": ["soft_deletion", "tabular_purge"]}, (0, 14)),
        ({"version": "1.2.3"}, (1, 2)),
    ],
)
def test_versions_are_recognised(info: dict[str, object], version: tuple[int, int]) -> None:
    assert parse_server(AT, info).version == version


@pytest.mark.parametrize("text", ["0.10.4", "0.9.5", "latest", ""])
def test_older_and_unknown_versions_are_refused_by_name(text: str) -> None:
    with pytest.raises(
        UnsupportedServerError, match=f"{AT} runs Lakekeeper {text or 'of an unknown version'}; 0.11 or newer"
    ):
        parse_server(AT, {"version": text})


STORAGE = {"type": "s3", "bucket": "lake", "region": "eu-central-1", "sts_enabled": False}


@pytest.mark.parametrize(
    ("path", "version"),
    [("storage.sts_endpoint", "0.11.6"), ("storage.storage_layout", "0.11.6"), ("allowed_format_versions", "0.12.4")],
)
def test_fields_that_a_version_would_drop_are_refused(path: str, version: str) -> None:
    server = parse_server(AT, {"version": version})
    props = {"server": {"endpoint": AT}, "project_id": "acme", "name": "main", "storage": STORAGE}
    require_supported(server, WarehouseArgs.parse(props))
    values = {
        "storage.sts_endpoint": {"storage": {**STORAGE, "sts_endpoint": "https://sts.example.com"}},
        "storage.storage_layout": {"storage": {**STORAGE, "storage_layout": {"type": "default"}}},
        "allowed_format_versions": {"allowed_format_versions": [2]},
    }
    with pytest.raises(UnsupportedServerError, match=f"`{path}` needs Lakekeeper .* {AT} runs {version}"):
        require_supported(server, WarehouseArgs.parse(props | values[path]))


@pytest.mark.parametrize(
    ("info", "reasons"),
    [
        ({"version": "0.13.3"}, ["Lakekeeper 0.13.3 lists active warehouses only"]),
        ({"version": "0.14.0", "authz-backend": "allow-all"}, []),
        ({"version": "0.14.0", "authz-backend": "openfga"}, ["lists show only what this identity may see"]),
        (
            {"version": "0.11.6", "authz-backend": "openfga"},
            ["Lakekeeper 0.11.6 lists active warehouses only", "lists show only what this identity may see"],
        ),
    ],
)
def test_reasons_why_a_warehouse_may_not_be_listed(info: dict[str, object], reasons: list[str]) -> None:
    assert parse_server(AT, info).unlisted == " and ".join(reasons)


@pytest.mark.parametrize(("kind", "since"), [("table", 11), ("generic-table", 13), ("tag", 14)])
def test_kinds_of_objects_by_version(kind: ObjectKind, since: int) -> None:
    for minor in (11, 12, 13, 14):
        server = parse_server(AT, {"version": f"0.{minor}.0"})
        assert server.has(kind) == (minor >= since)
        if minor >= since:
            server.require_kind(kind)
        else:
            with pytest.raises(UnsupportedServerError, match=rf"a {kind} needs Lakekeeper 0\.{since} or newer"):
                server.require_kind(kind)


def test_provider_imports_nothing_heavy() -> None:
    """Its process starts for every preview."""
    code = "import sys; from lakewright.lakekeeper import Warehouse; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"pulumi_aws", "pulumi_kubernetes", "boto3", "botocore", "kubernetes", "lakewright_engine"}
    assert not loaded & {"httpx", "tenacity"}, "a program that only declares sends nothing"


def test_client_does_not_import_pulumi() -> None:
    code = "import sys; import lakewright.lakekeeper.api.catalog.contents; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pulumi" not in done.stdout.split()
