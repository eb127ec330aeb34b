"""Settings of the platform stack: what is accepted, what is refused and how it is explained."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from lakewright.explanation.json_schemas import build_platform_schema, format_platform_schema
from lakewright.platform_stack.secret_values import find_key_mistake, find_openfga_database_problems
from lakewright.platform_stack.settings.checks import parse_platform_spec
from lakewright.platform_stack.settings.extra_env import find_rejection_reason
from lakewright.platform_stack.settings.server_environment import (
    as_string,
    build_server_environment,
    format_kafka_config,
)
from lakewright.validation.problems import SpecError

from tests.platform_documents import DIGEST, DRIFT_CHECK, production, replace_value, trial
from tests.schema_validator import make_validator


def problems(document: dict[str, Any]) -> str:
    with pytest.raises(SpecError) as refused:
        parse_platform_spec(document, "stack test")
    return str(refused.value)


def plain(document: dict[str, Any]) -> dict[str, str]:
    return dict(build_server_environment(parse_platform_spec(document, "stack test")).plain)


def test_the_published_schema_is_up_to_date() -> None:
    file = Path(__file__).parents[3] / "docs" / "schema" / "platform.schema.json"

    assert file.read_text() == format_platform_schema(), "run `make schema`"


@pytest.mark.parametrize("name", ["example", "trial"])
def test_the_example_stacks_are_accepted(name: str) -> None:
    file = Path(__file__).parents[3] / "infra" / "platform" / "stacks" / f"Pulumi.{name}.yaml"
    stack_file = yaml.safe_load(file.read_text())
    document = stack_file["config"]["lakewright-platform:spec"]

    make_validator(build_platform_schema()).validate(stack_file)
    assert parse_platform_spec(document, name).name == "lakekeeper"


@pytest.mark.parametrize("document", [production(), trial()], ids=["production", "trial"])
def test_the_smallest_specs_are_accepted(document: dict[str, Any]) -> None:
    assert parse_platform_spec(document, "stack test").name == "lakekeeper"


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("server.image", "quay.io/lakekeeper/catalog:v0.13.3", "server.image: expected an image by digest"),
        ("gateway.image", "nginx:1", "gateway.image: expected an image by digest"),
        (
            "drift_check",
            DRIFT_CHECK | {"limits": {"image": "lakewright:1"}},
            "drift_check.limits.image: expected an image by digest",
        ),
        (
            "drift_check",
            DRIFT_CHECK | {"compute": {"image": "lakewright:1"}},
            "drift_check.compute.image: expected an image by digest",
        ),
        ("server.ui", {"provider_uri": "http://idp.corp.example"}, "server.ui.provider_uri: expected `https://`"),
        ("server.version", "0.13.2", "server.version: expected the release of the image's tag, 0.13.3"),
        ("server.version", "0.10.4", "server.version: expected a release of 0.11, 0.12, 0.13, 0.14"),
        ("server.version", "latest", "a version looks like `0.13.3`"),
        ("server.authorization", {"backend": "allowall"}, "`allowall` lets every caller read and change"),
        ("server.authentication", {}, "every caller is anonymous"),
        ("server.authentication.oidc.audience", [], "server.authentication.oidc.audience"),
        ("server.authentication.oidc.provider_uri", "http://idp.corp.example", "would leave the cluster without TLS"),
        ("server.authentication.kubernetes.accept_legacy_service_accounts", True, "tokens without audience and expiry"),
        ("server.logs.request_bodies", True, "bodies contain credentials of warehouses"),
        ("server.logs.authorization_header", True, "headers contain tokens"),
        ("server.storage.skip_validation", True, "without proof that their credentials work"),
        ("server.storage.s3_require_external_id", False, "a tenant could name the role of another tenant"),
        ("server.storage.s3_direct_system_credentials", True, "the server's own AWS identity"),
        ("server.catalog.default_project_id", "main", "needs Lakekeeper 0.14.0 or newer (LAKEKEEPER__DEFAULT_PROJECT"),
        ("server.caches.user_assignments.time_to_live", 600, "expected at most the life of the cache `role`, 120"),
        ("server.events.kafka", {"topic": "t", "config": {"sasl.password": "x"}}, "`sasl.password` belongs to"),
        ("server.ui", {}, "needs `management.url` or `management.route`"),
        ("database.postgres.ssl_mode", "prefer", "the connection may be in plain text"),
        ("database.postgres.password", "hunter2", "not the secret itself"),
        ("database.trial_postgres", {"image": f"postgres{DIGEST}"}, "expected exactly one of `postgres`"),
        (
            "database.secrets",
            {
                "backend": "kv2",
                "url": "http://vault.corp.example",
                "user": "u",
                "password": "env:P",
                "secret_mount": "kv",
            },
            "would leave the cluster without TLS",
        ),
        ("gateway.tls", None, "tokens and credentials would be sent without TLS to http://lakekeeper-gateway"),
        ("gateway.url", "http://catalog.corp.example", "would leave the cluster without TLS"),
        (
            "gateway.route",
            {"kind": "ingress", "host": "a.example", "controller_namespace": "n"},
            "gateway.route.tls_secret: required",
        ),
        (
            "gateway.route",
            {"kind": "http-route", "host": "a.example", "controller_namespace": "n"},
            "expected `parent` with `kind: http-route`",
        ),
        (
            "gateway.service",
            {"type": "NodePort"},
            "gateway.client_cidrs: required with `gateway.service.type: NodePort`",
        ),
        (
            "gateway.route",
            {"kind": "ingress", "host": "a.example", "tls_secret": "t"},
            "gateway.route.controller_namespace: expected the namespace of the pods that forward requests",
        ),
        (
            "management.route",
            {"kind": "ingress", "host": "a.example", "tls_secret": "t"},
            "name its networks in `management.client_cidrs`",
        ),
        ("bootstrap", {"accept_terms_of_use": True}, "needs `management.url`"),
        ("bootstrap", {"accept_terms_of_use": False}, "bootstrap.accept_terms_of_use"),
        ("nickname", "x", "unknown key; expected one of version, name"),
        ("name", "l" * 37, "name: expected at most 36 characters"),
        ("gateway.tls", {"certificate": "a.pem", "key": "kubernetes:a#b"}, "gateway.tls.key: expected a reference"),
        ("gateway.tls", {"certificate": "a.pem", "key": "generated"}, "a generated value would fit nothing here"),
        ("server.authorization.openfga.api_key", "kubernetes:a#b", "openfga.api_key: expected a reference"),
        (
            "server.authorization.openfga.server.database_uri",
            "kubernetes:a#b",
            "openfga.server.database_uri: expected a reference",
        ),
        (
            "server.events.nats",
            {"address": "tls://n.example", "topic": "t", "credentials_file": "kubernetes:a#b"},
            "nats.credentials_file: expected a reference",
        ),
        (
            "server.events.kafka",
            {"topic": "t", "config": {"bootstrap.servers": "b"}, "secrets": {"sasl.password": "kubernetes:a#b"}},
            "kafka.secrets.sasl.password: expected a reference",
        ),
    ],
)
def test_a_mistake_is_named_with_its_path(path: str, value: Any, expected: str) -> None:
    assert expected in problems(replace_value(production(), path, value))


@pytest.mark.parametrize("query", ["", "?sslmode=disable", "?connect_timeout=5&sslmode=prefer", "?sslmode=allow"])
def test_openfga_reaches_its_database_by_tls(query: str) -> None:
    values = {"env:OPENFGA_DATABASE_URI": f"postgres://openfga:hunter2@db.example/openfga{query}"}
    spec = parse_platform_spec(production(), "stack test")
    trial_spec = parse_platform_spec(production() | {"trial": True}, "stack test")

    (problem,) = find_openfga_database_problems(spec, values)

    assert problem.path == "server.authorization.openfga.server.database_uri"
    assert "End the address in `?sslmode=verify-full`" in problem.expected
    assert "hunter2" not in problem.expected
    assert find_openfga_database_problems(trial_spec, values) == []


def test_address_of_openfgas_database_with_tls_is_accepted() -> None:
    uri = "postgres://openfga:hunter2@db.example/openfga?pool_max_conns=5&sslmode=verify-full"
    spec = parse_platform_spec(production(), "stack test")

    assert find_openfga_database_problems(spec, {"env:OPENFGA_DATABASE_URI": uri}) == []


@pytest.mark.parametrize(
    "address",
    ["nats://a:4222,b:4222", "nats://a,b", "nats://a:0", "nats://a:99999", "nats://a:x", "http://a:4222", "nats://"],
)
def test_nats_has_one_address(address: str) -> None:
    document = replace_value(production(), "server.events.nats", {"address": address, "topic": "t"})

    assert "server.events.nats.address: expected one address, `nats://HOST[:PORT]`" in problems(document)


@pytest.mark.parametrize(
    "address", ["nats://user:hunter2@nats.example:4222", "tls://hunter2@nats.example", "hunter2@a/"]
)
def test_credentials_in_the_address_of_nats_are_refused(address: str) -> None:
    """The message names the settings for credentials, and does not repeat the credential."""
    reported = problems(replace_value(production(), "server.events.nats", {"address": address, "topic": "t"}))

    assert "server.events.nats.address: expected `nats://HOST[:PORT]`" in reported
    assert "`user` and `password`, `token` or `credentials_file`" in reported
    assert "hunter2" not in reported


METADATA_SERVICES = ("169.254.169.254", "metadata.google.internal")


@pytest.mark.parametrize("host", METADATA_SERVICES)
@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("server.egress", ["https://{host}:8443"]),
        ("server.authentication.oidc.provider_uri", "https://{host}/realms/p"),
        ("server.authorization", {"openfga": {"endpoint": "https://{host}"}}),
        ("server.events.nats", {"address": "nats://{host}:4222", "topic": "t"}),
        ("server.events.kafka", {"topic": "t", "config": {"bootstrap.servers": "kafka.example,{host}:9092"}}),
        ("database.postgres.host_write", "{host}"),
        ("database.postgres.host_read", "{host}"),
    ],
)
def test_metadata_services_are_refused(path: str, form: Any, host: str) -> None:
    document = replace_value(production(), path, yaml.safe_load(yaml.safe_dump(form).replace("{host}", host)))

    reported = problems(document)

    assert f"found `{host}`" in reported
    assert f"{path}" in reported


@pytest.mark.parametrize("url", ["https://idp.example:0", "https://idp.example:99999", "https://idp.example:x"])
def test_ports_of_addresses_are_checked(url: str) -> None:
    reported = problems(replace_value(production(), "server.authentication.oidc.provider_uri", url))

    assert "provider_uri: an endpoint looks like `https://host:port`" in reported


@pytest.mark.parametrize(
    "servers", ["", ",", "kafka.example:0", "kafka.example:99999", "a b", "SASL_SSL://a:x", "a:1;b:2"]
)
def test_wrong_brokers_of_kafka_are_refused(servers: str) -> None:
    kafka = {"topic": "t", "config": {"bootstrap.servers": servers}}

    assert "expected HOST[:PORT], separated by commas" in problems(
        replace_value(production(), "server.events.kafka", kafka)
    )


def test_bootstrap_of_a_secured_server_needs_credentials() -> None:
    document = replace_value(production(), "bootstrap", {"accept_terms_of_use": True})

    reported = problems(replace_value(document, "management.url", "https://lakekeeper.example"))

    assert "bootstrap.auth: required" in reported


def test_openfga_needs_authentication_even_in_a_trial() -> None:
    openfga = {"openfga": {"endpoint": "http://openfga.trial.svc:8081"}}

    assert "permissions need users" in problems(replace_value(trial(), "server.authorization", openfga))


def test_a_route_of_the_catalog_must_not_serve_management() -> None:
    route = {"kind": "ingress", "host": "a.example", "tls_secret": "t", "controller_namespace": "n"}
    document = replace_value(replace_value(production(), "gateway.route", route), "management.route", route)

    assert "must not serve the management API" in problems(document)


def test_all_mistakes_are_reported_at_once() -> None:
    document = replace_value(replace_value(production(), "gateway.image", "nginx"), "server.image", "lakekeeper")

    assert "2 mistakes" in problems(document)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ICEBERG_REST__BASE_URI", "its successor is `LAKEKEEPER__BASE_URI`"),
        ("LAKEKEEPER__QUEUE_CONFIG__MAX_RETRIES", "the number of attempts of a task is a constant"),
        ("LAKEKEEPER__QUEUE_CONFIG__POLL_INTERVAL", "its successor is `server.tasks.poll_interval`"),
        ("LAKEKEEPER__TASK_TABULAR_EXPIRATION_WORKERS", "its successor is `server.tasks.soft_deletion_workers`"),
        ("LAKEKEEPER__METRICS_PORT", "retired name"),
        ("LAKEKEEPER__PG_ENCRYPTION_KEY", "use `database.secrets.encryption_key`"),
        ("lakekeeper__pg_read_pool_connections", "use `database.pools.read_connections`"),
        ("LAKEKEEPER__OPENID_PROVIDERS__OKTA__URI", "use `server.authentication.providers.provider_uri`"),
        ("LAKEKEEPER__CACHE__STC__CAPACITY", "use `server.caches.short_term_credentials.capacity`"),
        ("LAKEKEEPER__KV2", "has a setting"),
        ("LAKEKEEPER__BASE_URI", "is set by the stack, from `gateway.url`"),
        ("LAKEKEEPER__DEBUG__MIGRATE_BEFORE_SERVE", "is set by the stack"),
        ("RUST_LOG", "is set by the stack, from `server.logs.level`"),
        ("SSL_CERT_FILE", "is set by the stack, from `server.ca_bundle`"),
        ("AWS_SECRET_ACCESS_KEY", "looks like a secret"),
        ("A B", "expected the name of an environment variable"),
    ],
)
def test_the_escape_hatch_refuses_names_with_a_setting(name: str, expected: str) -> None:
    assert expected in str(find_rejection_reason(name))
    assert f"server.extra_env.{name}" in problems(replace_value(production(), "server.extra_env", {name: "1"}))


@pytest.mark.parametrize("name", ["LAKEKEEPER__PREFIX_TEMPLATE", "LAKEKEEPER__CEDAR__REFRESH_DISABLED", "TZ"])
def test_the_escape_hatch_passes_other_names(name: str) -> None:
    document = replace_value(production(), "server.extra_env", {name: "1"})

    assert plain(document)[name] == "1"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain text", "plain text"),
        ("123", '"123"'),
        ("1.5", '"1.5"'),
        ("true", '"true"'),
        ("[a]", '"[a]"'),
        ('"quoted"', '"\\"quoted\\""'),
        (" padded", '" padded"'),
        ("a,b", "a,b"),
    ],
)
def test_values_that_read_as_other_types_are_quoted(text: str, expected: str) -> None:
    assert as_string(text) == expected


def test_kafka_settings_are_one_table() -> None:
    kafka = {"topic": "t", "config": {"bootstrap.servers": "a:1,b:2"}, "secrets": {"sasl.password": "env:K"}}
    spec = parse_platform_spec(replace_value(production(), "server.events.kafka", kafka), "stack test")

    assert format_kafka_config(spec, {"sasl.password": 'p"w'}) == (
        r'{"bootstrap.servers"="a:1,b:2","sasl.password"="p\"w"}'
    )


def test_values_have_lakekeepers_forms() -> None:
    document = production(
        requests={"allow_origin": ["https://a.example", "https://b.example"], "max_time": "10"},
        tasks={"default_expiration_delay": 60},
        monitoring={"runtime_report_interval": "30s"},
    )
    document["server"]["authorization"] = {
        "instance_admins": ["oidc~ci"],
        "openfga": {"endpoint": "https://openfga.example"},
    }

    variables = plain(document)

    assert variables["LAKEKEEPER__ALLOW_ORIGIN"] == "https://a.example,https://b.example"
    assert variables["LAKEKEEPER__INSTANCE_ADMINS"] == '["oidc~ci"]'
    assert variables["LAKEKEEPER__MAX_REQUEST_TIME"] == '"10"'
    assert variables["LAKEKEEPER__DEFAULT_TABULAR_EXPIRATION_DELAY_SECONDS"] == '"60"'
    assert variables["LAKEKEEPER__METRICS__TOKIO__REPORT_INTERVAL"] == "30s"
    assert variables["LAKEKEEPER__ENABLE_KUBERNETES_AUTHENTICATION"] == "true"


def test_no_secret_is_among_the_plain_values() -> None:
    environment = build_server_environment(parse_platform_spec(production(), "stack test"))

    assert environment.secrets == {
        "LAKEKEEPER__PG_PASSWORD": "env:DATABASE_PASSWORD",
        "LAKEKEEPER__PG_ENCRYPTION_KEY": "generated",
        "LAKEKEEPER__OPENFGA__API_KEY": "generated",
    }
    assert not environment.secrets.keys() & environment.plain.keys()
    assert not {"env:DATABASE_PASSWORD", "generated"} & set(environment.plain.values())


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("<This is unsafe, please set a proper key>", "known example key"),
        ("short", "room for 3 random bytes"),
        ("0123456789abcdef0123456789abcdef", "room for 16 random bytes"),
        ("not-a-real-key-not-a-real-key-1234", "room for 25 random bytes"),
        ("password" * 8, "it repeats itself"),
        ("a" * 64, "it repeats itself"),
    ],
)
def test_weak_encryption_keys_are_refused(key: str, expected: str) -> None:
    reason = str(find_key_mistake(key))

    assert expected in reason
    assert key not in reason


@pytest.mark.parametrize(
    "key",
    [
        "5f2b1c0e9d7a4e6688c3f1a2b4d5e6f70123987654abcdef8899aabbccddeeff",
        "mX2cQv8YdJk1ZtR5nW7bLp0sHfGe4uAoTiVy93CxKzE=",
        "tq8Jw0nO4k1b_2fXz-7cUe9RmYvLd3sHgPaT6iQyBxKoNCErVwZMjS5uGhFlAtDI",
    ],
)
def test_random_encryption_keys_are_accepted(key: str) -> None:
    assert find_key_mistake(key) is None
