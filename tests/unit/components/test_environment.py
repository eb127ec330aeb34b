"""Environments: read from a file, completed from a sandbox, refused with every mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from lakewright.environment.cluster import find_mistake
from lakewright.environment.environment import Environment
from lakewright.explanation.json_schemas import environment_schema_text
from lakewright.spec import SpecError

from tests.schema_validator import make_validator

REPOSITORY = Path(__file__).parents[3]


def _sandbox(folder: Path) -> Path:
    folder.mkdir()
    state = {
        "version": 1,
        "lakekeeper": {"endpoint": "http://127.0.0.1:1111", "catalog_uri": "http://127.0.0.1:1111/catalog"},
        "aws": {
            "endpoint": "http://127.0.0.1:2222",
            "region": "us-east-1",
            "catalog_principal_arn": "arn:aws:iam::123456789012:user/lakekeeper",
        },
        "credentials_file": str(folder / "credentials"),
    }
    (folder / "sandbox.json").write_text(json.dumps(state))
    return folder


def test_production_example_is_valid() -> None:
    environment = Environment.load(REPOSITORY / "environments" / "production.yaml", environ={})

    assert environment.lakekeeper.catalog == "https://lakekeeper.platform.example/catalog"
    assert find_mistake(environment.kubernetes.image("spark"), trial=False) is None


def test_sandbox_provides_all_addresses(tmp_path: Path) -> None:
    sandbox = _sandbox(tmp_path / "sb")
    file = tmp_path / "here.yaml"
    file.write_text("sandbox: sb\nkubernetes: {clients_namespace: jobs}\n")

    environment = Environment.load(file, environ={})

    assert environment.lakekeeper.endpoint == "http://127.0.0.1:1111"
    assert environment.lakekeeper.principal_arn == "arn:aws:iam::123456789012:user/lakekeeper"
    assert environment.aws.profile == "admin"
    assert environment.aws.shared_credentials_file == sandbox / "credentials"
    assert environment.kubernetes.render_to == sandbox / "rendered"
    assert environment.kubernetes.clients_namespace == "jobs"


@pytest.mark.parametrize(
    ("written", "audience"),
    [("", "lakekeeper"), (", jobs_token_audience: prod", "prod"), (", jobs_token_audience:", None)],
)
def test_audience_of_pod_tokens_is_a_setting(written: str, audience: str | None, tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text(f"lakekeeper: {{endpoint: 'https://catalog.example'{written}}}\n")

    assert Environment.load(file, environ={}).pod_identity.audience == audience


def test_empty_audience_is_refused_with_its_path(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text("lakekeeper: {endpoint: 'https://catalog.example', jobs_token_audience: ''}\n")

    with pytest.raises(SpecError, match=r"lakekeeper\.jobs_token_audience"):
        Environment.load(file, environ={})


def test_published_environment_schema_is_up_to_date() -> None:
    published = REPOSITORY / "docs" / "schema" / "environment.schema.json"

    assert published.read_text(encoding="utf-8") == environment_schema_text(), "run `make schema`"


def test_published_environment_schema_accepts_the_repository() -> None:
    schema = make_validator(json.loads(environment_schema_text()))
    files = [*(REPOSITORY / "environments").glob("*.yaml")]

    assert files
    assert [error for file in files for error in schema.iter_errors(yaml.safe_load(file.read_text()))] == []


def test_path_of_jobs_is_not_a_path_of_this_machine(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    text = (
        "lakekeeper: {{endpoint: https://catalog.example, jobs_ca_bundle: {path}, jobs_truststore: /etc/trust.p12}}\n"
    )
    file.write_text(text.format(path="/etc/trust.pem"))

    assert Environment.load(file, environ={}).lakekeeper.jobs_ca_bundle == "/etc/trust.pem"
    file.write_text(text.format(path="trust.pem"))
    with pytest.raises(SpecError, match=r"lakekeeper.jobs_ca_bundle: expected an absolute path"):
        Environment.load(file, environ={})


def test_sandbox_variable_selects_another_sandbox(tmp_path: Path) -> None:
    other = _sandbox(tmp_path / "other")
    file = tmp_path / "here.yaml"
    file.write_text("sandbox: nowhere\n")

    assert Environment.load(file, environ={"LAKEWRIGHT_SANDBOX": str(other)}).sandbox == other


def test_sandbox_variable_leaves_production_alone(tmp_path: Path) -> None:
    other = _sandbox(tmp_path / "other")
    production = REPOSITORY / "environments" / "production.yaml"

    environment = Environment.load(production, environ={"LAKEWRIGHT_SANDBOX": str(other)})

    assert environment == Environment.load(production, environ={})
    assert environment.sandbox is None
    assert environment.aws.endpoint is None
    assert not environment.lakekeeper.bootstrap
    assert environment.kubernetes.render_to is None


def test_sandbox_variable_is_relative_to_the_project_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not matter where the program runs."""
    sandbox_folder = _sandbox(tmp_path / "chosen")
    for folder in (tmp_path / "environments", tmp_path / "infra" / "tenant"):
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
    file = tmp_path / "environments" / "here.yaml"
    file.write_text("sandbox: nowhere\n")

    assert Environment.load(file, environ={"LAKEWRIGHT_SANDBOX": "chosen"}).sandbox == sandbox_folder


def test_missing_sandbox_says_how_to_start_it(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text("sandbox: sb\n")

    with pytest.raises(SpecError, match="lakewright sandbox up --dir"):
        Environment.load(file, environ={})


def test_missing_environment_lists_the_existing_ones(tmp_path: Path) -> None:
    (tmp_path / "staging.yaml").write_text("")

    with pytest.raises(SpecError, match="has: staging"):
        Environment.load(tmp_path / "production.yaml", environ={})


def test_all_mistakes_at_once_and_no_secret_repeated(tmp_path: Path) -> None:
    file = tmp_path / "here.yaml"
    file.write_text("lakekeeper:\n  endpoint: lakekeeper\n  auth: {kind: token, token: eyJhbGciOi}\naws: {zone: x}\n")

    with pytest.raises(SpecError) as caught:
        Environment.load(file, environ={})

    assert {problem.path for problem in caught.value.problems} == {
        "lakekeeper.endpoint",
        "lakekeeper.auth.token",
        "aws.zone",
    }
    assert "eyJ" not in str(caught.value)


@pytest.mark.parametrize(
    ("jobs_auth", "reported"),
    [
        ("{kind: token, token: 'env:TOKEN'}", None),
        ("{kind: client-credentials, token_url: 'https://i', client_id: j, client_secret: 'file:/run/s/key'}", None),
        ("{kind: token-file, path: /var/run/secrets/token}", "found token-file"),
        ("{kind: token, token: 'file:/etc/lakewright/token'}", "found 'file:/etc/lakewright/token'"),
        ("{kind: token, token: 'file:token'}", "a separate folder of the pod"),
    ],
)
def test_job_secrets_go_where_jobs_read_them(tmp_path: Path, jobs_auth: str, reported: str | None) -> None:
    file = tmp_path / "here.yaml"
    file.write_text(
        f"lakekeeper: {{endpoint: https://catalog.example, jobs_auth: {jobs_auth}}}\n"
        "kubernetes: {jobs_secret: {name: lakekeeper-jobs, key: client-secret}}\n"
    )
    if reported is None:
        assert Environment.load(file, environ={}).kubernetes.jobs_secret
    else:
        with pytest.raises(SpecError, match=r"kubernetes\.jobs_secret") as refused:
            Environment.load(file, environ={})
        assert reported in str(refused.value)


@pytest.mark.parametrize(
    ("lakekeeper", "refused"),
    [
        ("endpoint: 'http://lakekeeper.platform.svc:8181'", False),
        ("endpoint: 'http://lakekeeper.platform.svc:8181', auth: {kind: token, token: 'env:T'}", True),
        ("endpoint: 'http://127.0.0.1:8181', auth: {kind: token, token: 'env:T'}", False),
        ("endpoint: 'https://l.example', jobs_auth: {kind: token, token: 'env:T'}", False),
        (
            "endpoint: 'https://l.example', catalog_uri: 'http://l.svc/c', jobs_auth: {kind: token-file, path: /t}",
            True,
        ),
        (
            "endpoint: 'https://l.example', auth: {kind: client-credentials, token_url: 'http://idp.example/t',"
            " client_id: c, client_secret: 'env:S'}",
            True,
        ),
    ],
)
def test_secrets_need_tls_unless_the_environment_allows_it(tmp_path: Path, lakekeeper: str, *, refused: bool) -> None:
    file = tmp_path / "here.yaml"
    file.write_text(f"lakekeeper: {{{lakekeeper}, allow_plain_http: true}}\n")

    assert Environment.load(file, environ={}).lakekeeper.reference.allow_plain_http is True
    file.write_text(f"lakekeeper: {{{lakekeeper}}}\n")
    if refused:
        with pytest.raises(SpecError, match=r"lakekeeper: expected `https://` where `(jobs_)?auth` sends a token"):
            Environment.load(file, environ={})
    else:
        # Left out, so that no state of earlier versions differs.
        assert "allow_plain_http" not in Environment.load(file, environ={}).lakekeeper.reference.model_dump(
            exclude_none=True
        )
