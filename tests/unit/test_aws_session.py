"""Sessions of AWS share the descriptions of services, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lakewright.credentials.aws_session import open_aws_session, preload_service_models


def read_loader(session: Any) -> Any:
    return session._session.get_component("data_loader")


def test_sessions_share_descriptions_of_services() -> None:
    first, second = open_aws_session(None, "us-east-1", None), open_aws_session(None, "eu-west-1", None)

    assert read_loader(first) is read_loader(second)
    assert first.client("s3").meta.region_name == "us-east-1"
    assert second.client("s3").meta.region_name == "eu-west-1"
    paths = read_loader(second).search_paths
    assert len(paths) == len(set(paths))


def test_other_folder_of_descriptions_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = read_loader(open_aws_session(None, "us-east-1", None))
    monkeypatch.setenv("AWS_DATA_PATH", str(tmp_path))

    loader = read_loader(open_aws_session(None, "us-east-1", None))

    assert loader is not before
    assert str(tmp_path) in loader.search_paths


def test_preloading_needs_no_credentials_and_no_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    preload_service_models()
