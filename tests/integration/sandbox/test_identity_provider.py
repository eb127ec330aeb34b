"""`sandbox up --auth oauth2`: an identity provider whose tokens the catalog requires."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def up(directory: Path, sandbox_command: Run) -> Iterator[Callable[..., dict[str, Any]]]:
    def bring_up(*more: str) -> dict[str, Any]:
        completed = sandbox_command("up", "--dir", str(directory), "--json", *more)
        assert completed.returncode == 0, completed.stderr
        return json.loads(completed.stdout)

    return bring_up


def request_token(state: dict[str, Any]) -> str:
    tokens = state["tokens"]
    secret = Path(tokens["client_secret_file"]).read_text()
    form = {"grant_type": "client_credentials", "client_id": tokens["client_id"], "client_secret": secret}
    return httpx.post(tokens["token_url"], data=form).raise_for_status().json()["access_token"]


def read_info_status(state: dict[str, Any], with_token: str | None = None) -> int:
    headers = {"authorization": f"Bearer {with_token}"} if with_token else {}
    return httpx.get(f"{state['lakekeeper']['endpoint']}/management/v1/info", headers=headers).status_code


@pytest.mark.long
def test_tokens_are_required_and_valid_across_restarts(
    directory: Path, sandbox_command: Run, up: Callable[..., dict[str, Any]]
) -> None:
    state = up("--auth", "oauth2")
    first = request_token(state)
    assert (read_info_status(state), read_info_status(state, first)) == (401, 200)
    assert "Tokens      running" in sandbox_command("status", "--dir", str(directory)).stdout

    secrets = [Path(state["tokens"][f"{prefix}client_secret_file"]) for prefix in ("", "jobs_")]
    for file in (*secrets, directory / "clients" / "signing-key.pem"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    texts = [(directory / "sandbox.json").read_text(), *(log.read_text() for log in (directory / "logs").iterdir())]
    assert not any(file.read_text() in text for file in secrets for text in texts)

    assert "Stopped: lakekeeper, tokens, aws." in sandbox_command("down", "--dir", str(directory)).stdout
    restarted = up()
    assert restarted["tokens"]["issuer"] == state["tokens"]["issuer"]
    assert (read_info_status(restarted), read_info_status(restarted, first)) == (401, 200)

    older = up("--auth", "none", "--version", "0.11")
    assert "tokens" not in older
    response = httpx.get(f"{older['lakekeeper']['endpoint']}/management/v1/info").json()
    assert (older["lakekeeper"]["version"], response["version"]) == ("0.11", "0.11.6")
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{state['tokens']['issuer']}/health")

    sandbox_command("down", "--dir", str(directory), "--purge")
    assert not (directory / "clients").exists()


@pytest.mark.long
def test_enforced_grants_require_tokens_across_restarts(
    directory: Path, sandbox_command: Run, up: Callable[..., dict[str, Any]]
) -> None:
    for options in (["--authz", "openfga"], []):
        state = up(*options)
        catalog = httpx.Client(base_url=f"{state['lakekeeper']['endpoint']}/management/v1")
        assert catalog.get("info").status_code == 401
        catalog.headers["authorization"] = f"Bearer {request_token(state)}"
        assert catalog.get("info").json()["authz-backend"] == "openfga"
    body = {"accept-terms-of-use": True, "is-operator": True}
    assert catalog.post("bootstrap", json=body).status_code == 204
    assert catalog.get("whoami").json()["id"] == "oidc~stack"
    operator = {"type": "operator", "user": "oidc~stack"}
    assert catalog.get("permissions/server/assignments").json() == {"assignments": [operator]}

    refused = sandbox_command("up", "--dir", str(directory), "--auth", "none")
    assert refused.returncode == 2
    assert "Leave out `--auth none`, or add `--authz allowall`" in refused.stderr
    reset = sandbox_command(
        "reset", "--yes", "--json", "--dir", str(directory), "--auth", "none", "--authz", "allowall"
    )
    state = json.loads(reset.stdout)
    assert httpx.get(f"{state['lakekeeper']['endpoint']}/management/v1/info").json()["authz-backend"] == "allow-all"
