"""The sandbox answers what a real Lakekeeper answered, request by request."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
RECORDINGS = sorted((HERE / "recordings").glob("*.jsonl"))

pytestmark = pytest.mark.xdist_group("lakekeeper-recordings")


def _replayer() -> Any:
    spec = importlib.util.spec_from_file_location("lakekeeper_replay", HERE / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Replayer


@pytest.fixture(scope="module")
def differences(aws: Any, start_lakekeeper: Any) -> dict[str, list[str]]:
    """Of each recording; they build on one another, so all are replayed, in order, on one server."""
    client = start_lakekeeper("--no-system-identity", bootstrap=False)

    def with_admin_keys(body: str) -> str:
        body = body.replace('"aws-access-key-id":"minioadmin"', f'"aws-access-key-id":"{aws.access_key_id}"')
        body = body.replace('"access-key-id":"minioadmin"', f'"access-key-id":"{aws.access_key_id}"')
        for key in ("aws-secret-access-key", "secret-access-key"):
            body = body.replace(f'"{key}":"minioadmin"', f'"{key}":"{aws.secret_access_key}"')
        return body

    variables = {"base": str(client.base_url).rstrip("/"), "s3": aws.endpoint}
    replayer = _replayer()(client, variables, with_admin_keys)
    return {recording.name: replayer.replay(recording) for recording in RECORDINGS}


@pytest.mark.parametrize("recording", [recording.name for recording in RECORDINGS])
def test_answers_as_the_real_server(recording: str, differences: dict[str, list[str]]) -> None:
    assert differences[recording] == []
