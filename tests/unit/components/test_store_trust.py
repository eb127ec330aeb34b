"""Certificate authorities of a tenant's stores in what its pods trust."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lakewright.environment.environment import Environment
from lakewright.environment.local_files import trust_stores

STORE = "-----BEGIN CERTIFICATE-----\nof a store\n-----END CERTIFICATE-----\n"
PLATFORM = "-----BEGIN CERTIFICATE-----\nof the platform\n-----END CERTIFICATE-----\n"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write certificate files into a folder of the test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def environment(endpoint: str = "http://127.0.0.1:8181", **kubernetes: Any) -> Environment:
    document = {"lakekeeper": {"endpoint": endpoint}, "kubernetes": {"render_to": "rendered", **kubernetes}}
    return Environment.model_validate(document)


def read_bundle(settings: Environment) -> str:
    bundle = settings.kubernetes.ca_bundle
    assert bundle is not None
    assert bundle.file is not None
    return bundle.file.read_text()


def test_pods_trust_the_authority_of_a_store() -> None:
    settings = trust_stores(environment(), [None, STORE, STORE])

    assert read_bundle(settings) == STORE
    assert settings.trust_paths[0] is not None


def test_pods_keep_public_authorities_for_a_catalog_with_tls() -> None:
    bundle = read_bundle(trust_stores(environment("https://lakekeeper.example"), [STORE]))

    assert bundle.endswith(STORE)
    assert bundle.count("BEGIN CERTIFICATE") > 50


def test_authority_is_added_to_the_environments_file(tmp_path: Path) -> None:
    (tmp_path / "platform.pem").write_text(PLATFORM)

    settings = trust_stores(environment(ca_bundle={"file": str(tmp_path / "platform.pem")}), [STORE])

    assert read_bundle(settings) == PLATFORM + STORE


@pytest.mark.parametrize("source", ["config_map", "secret"])
def test_bundle_of_the_platform_stays(source: str) -> None:
    settings = environment(ca_bundle={source: "trust", "truststore_key": "truststore.p12"})

    assert trust_stores(settings, [STORE]) is settings


def test_stores_with_public_certificates_change_nothing() -> None:
    settings = environment()

    assert trust_stores(settings, [None]) is settings
