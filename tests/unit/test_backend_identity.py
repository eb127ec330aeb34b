"""The identity of the backend of states, by which an archive knows its stack after a `destroy`."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright.ownership.backend_identity import VARIABLE, compute_identity, find_running_backend


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("s3://states?region=eu-west-1", "s3://states?awssdk=v2"),
        ("s3://states/acme/", "s3://states/acme"),
        ("file:///states/", "file:///states"),
        ("https://api.pulumi.com", "https://api.pulumi.com/"),
    ],
)
def test_one_backend_has_one_identity(url: str, other: str) -> None:
    assert compute_identity(url) == compute_identity(other)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        ("s3://states", "s3://state"),
        ("s3://states", "gs://states"),
        ("s3://states?endpoint=a:9000", "s3://states?endpoint=b:9000"),
        ("file:///states", "file:///other"),
    ],
)
def test_two_backends_have_two_identities(url: str, other: str) -> None:
    assert compute_identity(url) != compute_identity(other)


def test_relative_folder_is_that_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert compute_identity("file://./states") == compute_identity((tmp_path / "states").as_uri())


def test_provider_knows_the_backend_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    assert find_running_backend() is None
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://states")
    assert find_running_backend() == compute_identity("s3://states")
    monkeypatch.setenv(VARIABLE, "given")
    assert find_running_backend() == "given"
