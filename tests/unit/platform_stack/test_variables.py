"""Each typed setting against Lakekeeper's own configuration names.

`configuration_names.json` of the sandbox's Lakekeeper has the variables that the releases 0.11.0 to 0.13.3 and the
coming 0.14 read: the fields of their configuration structs (`crates/*/src/config.rs`) and the variables of the UI, each
with its first release and, where it was removed, its last one.
"""

from __future__ import annotations

import pytest
from lakewright.platform_stack.settings.database import Persistence
from lakewright.platform_stack.settings.extra_env import RETIRED, SET_BY_STACK
from lakewright.platform_stack.settings.platform import ServerSettings
from lakewright.platform_stack.settings.variables import EnvVar, list_variables, parse_release
from lakewright_sandbox.lakekeeper.program.environment import read_names

NAMES = read_names()
SETTINGS = [variable for model in (ServerSettings, Persistence) for variable in list_variables(model)]
OWN = [variable for variable in SETTINGS if variable.has_prefix]

FACTS = frozenset(
    """
PG_DATABASE_URL_READ PG_DATABASE_URL_WRITE PG_HOST_R PG_HOST_W PG_PORT PG_USER PG_PASSWORD PG_DATABASE PG_SSL_MODE
PG_SSL_ROOT_CERT PG_SCHEMA PG_READ_POOL_CONNECTIONS PG_WRITE_POOL_CONNECTIONS PG_ACQUIRE_TIMEOUT PG_ENCRYPTION_KEY
PG_ENABLE_STATEMENT_LOGGING PG_TEST_BEFORE_ACQUIRE PG_CONNECTION_MAX_LIFETIME SECRET_BACKEND KV2__URL KV2__USER
KV2__PASSWORD KV2__SECRET_MOUNT BASE_URI USE_X_FORWARDED_HEADERS LISTEN_PORT BIND_IP METRICS__PORT
ENABLE_DEFAULT_PROJECT DEFAULT_PROJECT_ID RESERVED_NAMESPACES OPENID_PROVIDER_URI OPENID_AUDIENCE
OPENID_ADDITIONAL_ISSUERS OPENID_SCOPE OPENID_SUBJECT_CLAIM OPENID_ROLES_CLAIM OPENID_DISPLAY_NAME_TEMPLATE
OPENID_PROVIDERS__<ID>__URI OPENID_PROVIDERS__<ID>__AUDIENCE ENABLE_KUBERNETES_AUTHENTICATION
KUBERNETES_AUTHENTICATION_AUDIENCE KUBERNETES_AUTHENTICATION_ACCEPT_LEGACY_SERVICEACCOUNT
KUBERNETES_AUTHENTICATION_SUBJECT_SOURCE AUTHZ_BACKEND OPENFGA__ENDPOINT OPENFGA__STORE_NAME OPENFGA__API_KEY
OPENFGA__CLIENT_ID OPENFGA__CLIENT_SECRET OPENFGA__TOKEN_ENDPOINT OPENFGA__SCOPE INSTANCE_ADMINS
ENABLE_AWS_SYSTEM_CREDENTIALS ENABLE_AZURE_SYSTEM_CREDENTIALS ENABLE_GCP_SYSTEM_CREDENTIALS
S3_ENABLE_DIRECT_SYSTEM_CREDENTIALS S3_REQUIRE_EXTERNAL_ID_FOR_SYSTEM_CREDENTIALS SKIP_STORAGE_VALIDATION
NATS_ADDRESS NATS_TOPIC NATS_USER NATS_PASSWORD NATS_CREDS_FILE NATS_TOKEN KAFKA_TOPIC KAFKA_CONFIG
KAFKA_CONFIG_FILE LOG_CLOUDEVENTS PAGINATION_SIZE_DEFAULT PAGINATION_SIZE_MAX TASK_POLL_INTERVAL
TASK_SOFT_DELETION_WORKERS TASK_TABULAR_EXPIRATION_WORKERS TASK_TABULAR_PURGE_WORKERS IDEMPOTENCY__ENABLED
IDEMPOTENCY__LIFETIME MAX_REQUEST_BODY_SIZE MAX_REQUEST_TIME MAINTENANCE_MODE ALLOW_ORIGIN SERVE_SWAGGER_UI
UI__OPENID_CLIENT_ID UI__OPENID_PROVIDER_URI UI__OPENID_SCOPE UI__LAKEKEEPER_URL DEBUG__MIGRATE_BEFORE_SERVE
AUDIT__TRACING__ENABLED CACHE__WAREHOUSE__ENABLED CACHE__NAMESPACE__ENABLED CACHE__SECRETS__ENABLED
CACHE__STC__ENABLED CACHE__ROLE__ENABLED DEFAULT_TABULAR_EXPIRATION_DELAY_SECONDS
""".split()  # noqa: SIM905 - a table
)
"""The variables of the fact sheet's section 7 and of the tables in Lakekeeper's manual, without the prefix."""

WITHOUT_SETTING = {
    "PREFIX_TEMPLATE",
    "REFERENCED_BY__MAX_NESTING_DEPTH",
    "TRUSTED_ENGINES",
    "UI__OPENID_POST_LOGOUT_REDIRECT_DISABLED",
    "UI__OPENID_POST_LOGOUT_REDIRECT_URL",
}
"""Variables that only `server.extra_env` sets."""


def list_names(variable: EnvVar) -> set[str]:
    return {variable.name} | ({variable.former.name} if variable.former else set())


def test_every_setting_is_a_variable_of_lakekeeper() -> None:
    names = {name for variable in OWN for name in list_names(variable)}

    assert names - NAMES.keys() == set()


def test_every_variable_has_a_setting_or_a_reason() -> None:
    covered = {name for variable in OWN for name in list_names(variable)} | SET_BY_STACK.keys() | RETIRED.keys()

    assert NAMES.keys() - covered == WITHOUT_SETTING


def test_the_fact_sheets_variables_are_covered() -> None:
    covered = {name for variable in OWN for name in list_names(variable)} | SET_BY_STACK.keys()

    assert FACTS - covered == set()
    assert FACTS - NAMES.keys() == set()


@pytest.mark.parametrize("variable", OWN, ids=lambda variable: variable.name)
def test_a_setting_begins_with_the_release_that_reads_it(variable: EnvVar) -> None:
    releases = NAMES[variable.name]
    if variable.former:
        former = NAMES[variable.former.name]
        assert variable.since == former["since"]
        assert parse_release(former["last"]) < parse_release(variable.former.before)
        assert variable.former.before == releases["since"]
    else:
        assert variable.since == releases["since"]
        assert "last" not in releases


def test_no_two_settings_set_the_same_variable() -> None:
    # Both forms of the user exclude each other, as the backends of secrets do.
    names = [variable.name for variable in SETTINGS if variable.name not in {"SECRET_BACKEND", "PG_USER"}]

    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("version", "expected"),
    [("0.13.3", "LAKEKEEPER__TASK_TABULAR_EXPIRATION_WORKERS"), ("0.14.0", "LAKEKEEPER__TASK_SOFT_DELETION_WORKERS")],
)
def test_a_renamed_variable_has_the_name_of_the_release(version: str, expected: str) -> None:
    (workers,) = [variable for variable in OWN if variable.name == "TASK_SOFT_DELETION_WORKERS"]

    assert workers.format_name(version) == expected
