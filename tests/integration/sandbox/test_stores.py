"""`lakewright sandbox up --s3`: a running store in place of the emulated AWS, and choices that cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest
from lakewright.environment.environment import Environment
from lakewright_sandbox import lifecycle
from lakewright_sandbox.errors import SandboxOptionsError
from lakewright_sandbox.lifecycle import SandboxOptions
from lakewright_sandbox.runtime.credentials import ADMIN
from lakewright_sandbox.store.access import KEY_VARIABLES

from tests.integration.sandbox.conftest import Aws


def set_keys(monkeypatch: pytest.MonkeyPatch, key_id: str, secret: str) -> None:
    for name, value in zip(KEY_VARIABLES, (key_id, secret), strict=True):
        monkeypatch.setenv(name, value)


def test_running_store_by_its_address(aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any S3 serves; here it is the AWS of another sandbox. Its keys are in files that specs may refer to."""
    key = aws.keys[ADMIN]
    set_keys(monkeypatch, key.access_key_id, key.secret_access_key.get_secret_value())
    directory = tmp_path / "sandbox"

    store = lifecycle.bring_up(directory, SandboxOptions(s3=f"{aws.endpoint}/", s3_region="us-east-1")).sandbox.store

    try:
        assert store is not None
        assert (store.endpoint, store.pid) == (aws.endpoint, None)
        assert (directory / "store" / "secret_access_key").stat().st_mode & 0o077 == 0
        assert key.secret_access_key.get_secret_value() not in (directory / "sandbox.json").read_text()
        (tmp_path / "environments").mkdir()
        file = tmp_path / "environments" / "sandbox.yaml"
        file.write_text(f"sandbox: {directory}\n")
        rules = Environment.load(file).tenant_specs
        assert {store.access_key_id, store.secret_access_key} <= set(rules.references)
        assert aws.endpoint in rules.endpoints
        for name in KEY_VARIABLES:
            monkeypatch.delenv(name)
        assert lifecycle.bring_up(directory).sandbox.store == store
    finally:
        lifecycle.down(directory, purge=True)


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ("ceph", "expected `moto`, `minio` or the address of a running store"),
        ("http://key:secret@127.0.0.1:9", "expected `moto`, `minio` or the address of a running store"),
        ("http://127.0.0.1:9", "needs the keys of the store: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_choice_that_cannot_be(tmp_path: Path, choice: str, expected: str) -> None:
    with pytest.raises(SandboxOptionsError) as refused:
        lifecycle.bring_up(tmp_path / "sandbox", SandboxOptions(s3=choice))

    assert expected in str(refused.value)
    assert "secret@" not in str(refused.value)


def test_store_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch, "some-key", "some-secret")

    with pytest.raises(SandboxOptionsError, match=r"http://127\.0\.0\.1:9 does not respond"):
        lifecycle.bring_up(tmp_path / "sandbox", SandboxOptions(s3="http://127.0.0.1:9"))


def test_keys_that_a_store_does_not_know(aws: Aws, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_keys(monkeypatch, "AKIAXXXXXXXXXXXXXXXX", "some-secret")

    with pytest.raises(SandboxOptionsError, match="responded InvalidAccessKeyId") as refused:
        lifecycle.bring_up(tmp_path / "sandbox", SandboxOptions(s3=aws.endpoint))

    assert "some-secret" not in str(refused.value)
