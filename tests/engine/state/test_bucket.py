"""Backends in S3 buckets: layout, locks, conflicts, faults and refusals."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from lakewright_engine.model.errors import (
    DamagedStateError,
    StackLockedError,
    StackNotFoundError,
    StateAccessError,
    StateConflictError,
    StateError,
)
from lakewright_engine.model.resources import ResourceState, SecretValue, StackSnapshot
from lakewright_engine.state.backend import StateBackend
from lakewright_engine.state.backends import open_backend
from lakewright_engine.state.secrets import PassphraseManager
from lakewright_engine.storage import bucket_locks, lock_holder
from lakewright_engine.storage.s3_location import BucketLocation
from stackrunner import PASSPHRASE, Stack

ROOT = "team/states/.pulumi"
CLI_LOCK = "5e7a0a8e-3a0f-4c9e-8a35-2d4a0f3c8f11.json"
HOLD_AND_DIE = """
import os, sys
from lakewright_engine.state.backends import open_backend
lock = open_backend(sys.argv[1]).lock("conf", "dev")
lock.__enter__()
os._exit(9)
"""


@pytest.fixture(scope="module")
def secrets() -> Iterator[PassphraseManager]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "conformance")
        yield PassphraseManager.create("dev")


@pytest.fixture
def backend(bucket_url: str, secrets: PassphraseManager) -> StateBackend:
    backend = open_backend(bucket_url)
    backend.create("conf", "dev", secrets)
    return backend


@pytest.fixture
def put(s3: Any, bucket: str) -> Callable[[str, bytes], None]:
    return lambda key, content: s3.put_object(Bucket=bucket, Key=f"{ROOT}/{key}", Body=content)


@pytest.fixture
def keys(s3: Any, bucket: str) -> Callable[[], list[str]]:
    def list_keys() -> list[str]:
        objects = s3.list_objects_v2(Bucket=bucket).get("Contents", [])
        return [item["Key"].removeprefix(f"{ROOT}/") for item in objects]

    return list_keys


def snapshot(*names: str) -> StackSnapshot:
    return StackSnapshot(
        [
            ResourceState(f"urn:pulumi:dev::conf::t:t:T::{name}", "t:t:T", custom=False, inputs={"x": SecretValue("s")})
            for name in names
        ]
    )


def lock_of_cli(pid: int = 1, host: str = "elsewhere") -> bytes:
    now = datetime.now(UTC).isoformat()
    return json.dumps({"pid": pid, "username": "eve", "hostname": host, "timestamp": now}).encode()


def test_layout_is_that_of_the_cli(
    backend: StateBackend, secrets: PassphraseManager, keys: Callable[[], list[str]]
) -> None:
    backend.save("conf", "dev", snapshot("a"), secrets)
    backend.record("conf", "dev", {"kind": "update"})
    object_keys = keys()
    assert {"meta.yaml", "stacks/conf/dev.json", "stacks/conf/dev.json.bak"} < {*object_keys}
    kinds = sorted({key.rpartition("/")[0] for key in object_keys} - {""})
    assert kinds == ["backups/conf/dev", "history/conf/dev", "stacks/conf"]
    assert backend.load("conf", "dev") == snapshot("a")
    assert backend.history("conf", "dev") == [{"kind": "update"}]
    assert [(stack.name, stack.resources, stack.problem) for stack in backend.stacks("conf")] == [("dev", 1, "")]


def test_variables_of_the_cli_are_followed(
    backend: StateBackend,
    secrets: PassphraseManager,
    keys: Callable[[], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PULUMI_DIY_BACKEND_GZIP", "1")
    monkeypatch.setenv("PULUMI_DIY_BACKEND_RETAIN_CHECKPOINTS", "true")
    monkeypatch.setenv("PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS", "true")
    backend.save("conf", "dev", snapshot("a"), secrets)
    backend.record("conf", "dev", {"kind": "update"})
    stack_keys = [key for key in keys() if key.startswith("stacks/")]
    assert stack_keys[:2] == ["stacks/conf/dev.json.bak", "stacks/conf/dev.json.gz"]
    assert stack_keys[2].startswith("stacks/conf/dev.json.gz.")
    assert not [key for key in keys() if key.startswith("backups")]
    packed = backend.storage.read("stacks/conf/dev.json.gz")
    assert packed is not None
    assert json.loads(gzip.decompress(packed.content))["version"] == 3
    assert open_backend(backend.url).load("conf", "dev") == snapshot("a")
    assert backend.names("conf") == ["dev"]


def test_removed_stack_leaves_nothing(
    backend: StateBackend, secrets: PassphraseManager, keys: Callable[[], list[str]]
) -> None:
    backend.save("conf", "dev", snapshot("a"), secrets)
    backend.record("conf", "dev", {"kind": "update"})
    with pytest.raises(StateError, match="still has 1 resource"):
        backend.remove("conf", "dev")
    backend.remove("conf", "dev", force=True)
    assert keys() == ["meta.yaml"]
    with pytest.raises(StackNotFoundError):
        backend.export("conf", "dev")


def test_second_holder_is_refused_by_name(backend: StateBackend, bucket: str) -> None:
    with backend.lock("conf", "dev"):
        with pytest.raises(StackLockedError) as refused, open_backend(backend.url).lock("conf", "dev"):
            pytest.fail("two held the stack at once")
        (lock,) = refused.value.locks
        assert (lock.pid, lock.host) == (os.getpid(), socket.gethostname())
        assert f"s3://{bucket}/{ROOT}/locks/organization/conf/dev/lakewright-" in str(refused.value)
        assert str(refused.value).rstrip().endswith(("just now", "ago"))
    assert backend.locks("conf", "dev") == []


def test_lock_of_a_killed_run_is_removed(backend: StateBackend) -> None:
    subprocess.run([sys.executable, "-c", HOLD_AND_DIE, backend.url], check=False)
    (lock,) = backend.locks("conf", "dev")
    assert lock.is_abandoned
    with backend.lock("conf", "dev"):
        pass
    assert backend.locks("conf", "dev") == []


@pytest.mark.parametrize(("silent", "is_dead"), [(290, False), (310, True)])
def test_remote_holder_is_dead_by_its_heartbeat(
    backend: StateBackend,
    put: Callable[[str, bytes], None],
    monkeypatch: pytest.MonkeyPatch,
    silent: int,
    *,
    is_dead: bool,
) -> None:
    content = json.loads(lock_of_cli()) | {"lakewright": {"boot": "another", "heartbeat_seconds": 30}}
    put("locks/organization/conf/dev/lakewright-1.json", json.dumps(content).encode())
    monkeypatch.setattr(lock_holder, "DEAD_AFTER_SECONDS", 300 - silent)
    (lock,) = backend.locks("conf", "dev")
    assert lock.is_abandoned == is_dead
    assert "last heartbeat" in lock.remark


def test_lock_of_the_cli_is_never_dead(
    backend: StateBackend, put: Callable[[str, bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(f"locks/organization/conf/dev/{CLI_LOCK}", lock_of_cli(2**22 + 1, socket.gethostname()))
    monkeypatch.setattr(lock_holder, "DEAD_AFTER_SECONDS", -1)
    with (
        pytest.raises(StackLockedError, match=r"eve@.* \(pid 4194305\).*no such process runs"),
        backend.lock("conf", "dev"),
    ):
        pytest.fail("the lock of the CLI was ignored")
    assert [lock.name for lock in backend.cancel("conf", "dev")] == [CLI_LOCK]
    with backend.lock("conf", "dev"):
        pass


def test_heartbeat_renews_a_lock_and_revives_none(
    backend: StateBackend, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = backend.storage
    locks = bucket_locks.BucketLocks(storage, "locks/organization/conf/dev")  # pyright: ignore[reportArgumentType]
    with locks.create("lakewright-1.json") as lock:
        key = f"{ROOT}/locks/organization/conf/dev/lakewright-1.json"
        s3.put_object(Bucket=bucket, Key="clock", Body=b"")
        before = s3.head_object(Bucket=bucket, Key=key)["LastModified"]
        while s3.head_object(Bucket=bucket, Key=key)["LastModified"] == before:
            lock.touch()
        assert lock.is_held()
        backend.cancel("conf", "dev")
        lock.touch()
        assert not lock.is_held()


def test_lost_lock_never_overwrites_a_newer_state(
    backend: StateBackend, bucket_url: str, secrets: PassphraseManager
) -> None:
    """A suspended holder, whose lock another run removed, continues between its check and its write."""
    stale = open_backend(bucket_url)
    stale.load("conf", "dev")
    backend.save("conf", "dev", snapshot("newer"), secrets)
    with pytest.raises(StateConflictError, match=r"another process wrote .*stack 'dev'.*newer state is unchanged"):
        stale.save("conf", "dev", snapshot("stale"), secrets)
    assert open_backend(bucket_url).load("conf", "dev") == snapshot("newer")


def test_removed_state_is_not_written_again(backend: StateBackend, bucket_url: str, secrets: PassphraseManager) -> None:
    stale = open_backend(bucket_url)
    stale.load("conf", "dev")
    backend.remove("conf", "dev")
    with pytest.raises(StateError):
        stale.save("conf", "dev", snapshot("stale"), secrets)
    assert backend.names("conf") == []


def test_concurrent_creations_make_one_stack(bucket_url: str, secrets: PassphraseManager) -> None:
    first, second = open_backend(bucket_url), open_backend(bucket_url)
    assert not second.exists("conf", "dev")
    first.create("conf", "dev", secrets)
    with pytest.raises(StateError, match="already exists"):
        second.create("conf", "dev", secrets)


def test_repeated_write_of_the_same_content_succeeds(backend: StateBackend) -> None:
    """The response to the first request was lost, and the client repeats it."""
    version = backend.storage.write("x", b"same", "")
    assert backend.storage.write("x", b"same", "") == version
    with pytest.raises(StateConflictError):
        backend.storage.write("x", b"other", "")


def test_state_that_cannot_be_saved_is_kept_in_a_file(
    tmp_path: Path, bucket_url: str, s3: Any, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = Stack(
        tmp_path,
        'from filestore import File\nFile("b", "b.json", File("a", "a.json", "one").etag)\n',
        backend_url=bucket_url,
    )

    def remove_bucket(event: Any) -> None:
        if event.resource_pre_event is not None and event.resource_pre_event.metadata.urn.endswith("::b"):
            for item in s3.list_objects_v2(Bucket=bucket)["Contents"]:
                s3.delete_object(Bucket=bucket, Key=item["Key"])
            s3.delete_bucket(Bucket=bucket)

    outcome = stack.run("up", on_event=remove_bucket)
    assert outcome.exit == 1
    (unsaved_file,) = (stack.program_dir / ".lakewright" / "unsaved").iterdir()
    assert f"lakewright stack import --stack dev --file {unsaved_file}" in outcome.messages[-1]
    assert "does not exist" in "".join(outcome.messages)

    s3.create_bucket(Bucket=bucket)
    monkeypatch.setenv("PULUMI_CONFIG_PASSPHRASE", PASSPHRASE)
    open_backend(bucket_url).create("conf", "dev", stack.secrets())
    open_backend(bucket_url).import_("conf", "dev", json.loads(unsaved_file.read_text()))
    assert stack.resource("a").id == "a.json"
    assert [step["op"] for step in stack.run("up").steps] == ["same", "create"]


def test_state_of_a_limited_run_is_kept_in_order(tmp_path: Path, bucket_url: str, s3: Any, bucket: str) -> None:
    """The target runs first, and the untargeted resource needs what the program dropped."""
    program = """
import os
import pulumi
from filestore import File
step = int(os.environ["STEP"])
if step == 1:
    a = File("a", "a.json", "a")
depends = pulumi.ResourceOptions(depends_on=[a] if step == 1 else [])
b = File("b", "b.json", "b", opts=depends)
if step > 1:
    File("d", "d.json", File("c", "c.json", "c").etag)
"""
    stack = Stack(tmp_path, program, backend_url=bucket_url)
    stack.run("up", env={"STEP": "1"})

    def remove_bucket(event: Any) -> None:
        if event.resource_pre_event is not None and event.resource_pre_event.metadata.urn.endswith("::d"):
            for item in s3.list_objects_v2(Bucket=bucket)["Contents"]:
                s3.delete_object(Bucket=bucket, Key=item["Key"])
            s3.delete_bucket(Bucket=bucket)

    outcome = stack.run("up", "--target", "**::c", "--target", "**::d", env={"STEP": "2"}, on_event=remove_bucket)

    assert outcome.exit == 1
    (unsaved_file,) = (stack.program_dir / ".lakewright" / "unsaved").iterdir()
    urns = [body["urn"] for body in json.loads(unsaved_file.read_text())["deployment"]["resources"]]
    assert [urn.rpartition("::")[2] for urn in urns if urn.endswith(("::a", "::b"))] == ["a", "b"]


def test_damaged_state_spoils_no_list(
    backend: StateBackend, put: Callable[[str, bytes], None], secrets: PassphraseManager, bucket: str
) -> None:
    backend.create("conf", "other", secrets)
    backend.save("conf", "dev", snapshot("a"), secrets)
    backend.save("conf", "dev", snapshot("a", "b"), secrets)
    put("stacks/conf/dev.json", b'{"version": 3, "check')
    dev, other = backend.stacks("conf")
    assert (other.name, other.problem) == ("other", "")
    assert f"s3://{bucket}/{ROOT}/stacks/conf/dev.json" in dev.problem
    with pytest.raises(DamagedStateError, match="stack import --stack dev --backup"):
        backend.load("conf", "dev")

    backend.import_("conf", "dev", backend.export_backup("conf", "dev"))
    assert backend.load("conf", "dev") == snapshot("a")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("states-", "missing-"), r"the bucket 'missing-.*' does not exist at http.*create it"),
        (("127.0.0.1:", "127.0.0.1:1#"), r"http://127.0.0.1:1 does not respond"),
        (("team", "team?colour=red&x=1#"), None),
    ],
)
def test_unreachable_backend_says_what_to_do(
    bucket_url: str, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], expected: str | None
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    url = bucket_url.replace(*change)
    if expected is None:
        with pytest.raises(StateError, match=r"unknown parameter\(s\) colour, x; known are .*endpoint"):
            open_backend(url)
        return
    with pytest.raises(StateAccessError, match=rf"s3:\w+ on s3://.* failed: {expected}"):
        open_backend(url).stacks()


def test_refused_credentials_are_named(bucket_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAUNKNOWNUNKNOWN12")
    with pytest.raises(StateAccessError, match=r"refuses the AWS credentials|denies s3:ListBucket"):
        open_backend(bucket_url).names("conf")


def test_url_is_read_as_by_the_cli() -> None:
    url = "s3://b/a/b?endpoint=minio:9000&disableSSL=true&s3ForcePathStyle=1&awssdk=v2&ssetype=AWS:KMS&kmskeyid=k"
    location = BucketLocation.parse(url)
    assert (location.bucket, location.prefix, location.endpoint) == ("b", "a/b/", "http://minio:9000")
    assert (location.has_path_style, location.uses_http, location.encryption) == (True, True, "aws:kms")
    assert location.request_checksums == "when_required"
    assert BucketLocation.parse("s3://b?region=eu-west-1&profile=p").prefix == ""
    for wrong in ("s3://", "s3://b?dualstack=maybe", "s3://b?role=me", "s3://b/../c", "s3://b?ssetype=none"):
        with pytest.raises(StateError):
            BucketLocation.parse(wrong)
