"""Settings of the running server: requests, task queues, caches, logs, storage and the UI."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from lakewright.names.types import ProjectId
from lakewright.platform_stack.settings.types import Count, HttpUrl, Interval, IsoDuration, Text, TextList
from lakewright.platform_stack.settings.variables import EnvPrefix, EnvVar, FormerName
from lakewright.validation.strict_model import StrictModel

_Path = Annotated[str, Field(pattern=r"^/[^\s]*$")]


class IdempotencySettings(StrictModel):
    """Idempotency keys of clients."""

    enabled: Annotated[bool | None, EnvVar("ENABLED", since="0.12.0")] = None
    lifetime: Annotated[IsoDuration | None, EnvVar("LIFETIME", since="0.12.0")] = None
    grace_period: Annotated[IsoDuration | None, EnvVar("GRACE_PERIOD", since="0.12.0")] = None
    cleanup_timeout: Annotated[IsoDuration | None, EnvVar("CLEANUP_TIMEOUT", since="0.12.0")] = None


class Requests(StrictModel):
    """Limits of requests, and settings of their responses."""

    max_body_size: Annotated[Count | None, EnvVar("MAX_REQUEST_BODY_SIZE", since="0.12.0")] = None
    """Bytes. The gateway has this limit, too."""
    max_time: Annotated[Interval | None, EnvVar("MAX_REQUEST_TIME", since="0.12.0")] = None
    maintenance_mode: Annotated[Literal["off", "read-only"] | None, EnvVar("MAINTENANCE_MODE", since="0.12.3")] = None
    pagination_size_default: Annotated[Count | None, EnvVar("PAGINATION_SIZE_DEFAULT")] = None
    pagination_size_max: Annotated[Count | None, EnvVar("PAGINATION_SIZE_MAX")] = None
    idempotency: Annotated[IdempotencySettings, EnvPrefix("IDEMPOTENCY__")] = IdempotencySettings()
    allow_origin: Annotated[TextList | None, EnvVar("ALLOW_ORIGIN", form="comma")] = None
    """Origins of browsers (CORS)."""
    serve_swagger_ui: Annotated[bool | None, EnvVar("SERVE_SWAGGER_UI")] = None


class Catalog(StrictModel):
    """Projects and namespaces."""

    enable_default_project: Annotated[bool, EnvVar("ENABLE_DEFAULT_PROJECT")] = False
    """Whether requests without a project use a default project. Tenants have projects of their own."""
    default_project_id: Annotated[ProjectId | None, EnvVar("DEFAULT_PROJECT_ID", since="0.14.0")] = None
    reserved_namespaces: Annotated[TextList | None, EnvVar("RESERVED_NAMESPACES", form="comma")] = None
    role_max_nesting_depth: Annotated[Count | None, EnvVar("ROLE__MAX_NESTING_DEPTH", since="0.13.0")] = None


class Tasks(StrictModel):
    """The task queues. Their retries and timeouts are settings of each warehouse (`task_queues` of a tenant)."""

    poll_interval: Annotated[Interval | None, EnvVar("TASK_POLL_INTERVAL")] = None
    soft_deletion_workers: Annotated[
        Count | None,
        EnvVar("TASK_SOFT_DELETION_WORKERS", former=FormerName("TASK_TABULAR_EXPIRATION_WORKERS", before="0.14.0")),
    ] = None
    purge_workers: Annotated[Count | None, EnvVar("TASK_TABULAR_PURGE_WORKERS")] = None
    log_cleanup_workers: Annotated[Count | None, EnvVar("TASK_LOG_CLEANUP_WORKERS", since="0.11.2")] = None
    default_expiration_delay: Annotated[
        Count | None, EnvVar("DEFAULT_TABULAR_EXPIRATION_DELAY_SECONDS", form="string")
    ] = None
    """Seconds until a dropped table is deleted, where the warehouse does not say."""


class CacheWithoutTtl(StrictModel):
    """A cache whose entries have their own life."""

    enabled: Annotated[bool | None, EnvVar("ENABLED")] = None
    capacity: Annotated[Count | None, EnvVar("CAPACITY")] = None


class CacheWithTtl(CacheWithoutTtl):
    """A cache of one replica."""

    time_to_live: Annotated[Count | None, EnvVar("TIME_TO_LIVE_SECS")] = None
    """Seconds."""


class CacheSettings(StrictModel):
    """Caches. Each replica has its own, so another replica may see a change later."""

    short_term_credentials: Annotated[CacheWithoutTtl, EnvPrefix("STC__")] = CacheWithoutTtl()
    warehouse: Annotated[CacheWithTtl, EnvPrefix("WAREHOUSE__")] = CacheWithTtl()
    namespace: Annotated[CacheWithTtl, EnvPrefix("NAMESPACE__")] = CacheWithTtl()
    secrets: Annotated[CacheWithTtl, EnvPrefix("SECRETS__")] = CacheWithTtl()
    role: Annotated[CacheWithTtl, EnvPrefix("ROLE__", since="0.12.0")] = CacheWithTtl()
    user_assignments: Annotated[CacheWithTtl, EnvPrefix("USER_ASSIGNMENTS__", since="0.12.0")] = CacheWithTtl()
    role_members: Annotated[CacheWithTtl, EnvPrefix("ROLE_MEMBERS__", since="0.12.0")] = CacheWithTtl()


class LogSettings(StrictModel):
    """Logs of the server."""

    level: Annotated[
        Annotated[str, Field(pattern=r"^[a-z0-9_:=,]+$")] | None, EnvVar("RUST_LOG", form="raw", has_prefix=False)
    ] = "info"
    """Level, or levels by module: `info,lakekeeper=debug`."""
    extended: Annotated[bool | None, EnvVar("DEBUG__EXTENDED_LOGS", since="0.11.1")] = None
    """Whether lines name file and line of the code."""
    request_bodies: Annotated[bool | None, EnvVar("DEBUG__LOG_REQUEST_BODIES")] = None
    """Bodies contain credentials of warehouses: for trials only."""
    authorization_header: Annotated[bool | None, EnvVar("DEBUG__LOG_AUTHORIZATION_HEADER", since="0.12.0")] = None
    """Headers contain tokens: for trials only."""
    audit: Annotated[bool | None, EnvVar("AUDIT__TRACING__ENABLED", since="0.12.0")] = None


class StorageSettings(StrictModel):
    """Access of the server to object storage."""

    aws_system_credentials: Annotated[bool | None, EnvVar("ENABLE_AWS_SYSTEM_CREDENTIALS")] = None
    azure_system_credentials: Annotated[bool | None, EnvVar("ENABLE_AZURE_SYSTEM_CREDENTIALS")] = None
    gcp_system_credentials: Annotated[bool | None, EnvVar("ENABLE_GCP_SYSTEM_CREDENTIALS")] = None
    s3_direct_system_credentials: Annotated[bool | None, EnvVar("S3_ENABLE_DIRECT_SYSTEM_CREDENTIALS")] = None
    """Whether a warehouse may use the server's own identity without a role: for trials only."""
    s3_require_external_id: Annotated[bool | None, EnvVar("S3_REQUIRE_EXTERNAL_ID_FOR_SYSTEM_CREDENTIALS")] = None
    """`false` lets a tenant name the role of another tenant: for trials only."""
    skip_validation: Annotated[bool | None, EnvVar("SKIP_STORAGE_VALIDATION")] = None
    """For trials only."""


class Monitoring(StrictModel):
    """Health, metrics and statistics."""

    health_check_frequency: Annotated[Count | None, EnvVar("HEALTH_CHECK_FREQUENCY_SECONDS")] = None
    """Seconds."""
    statistics_flush_interval: Annotated[Interval | None, EnvVar("ENDPOINT_STAT_FLUSH_INTERVAL")] = None
    runtime_report_interval: Annotated[Interval | None, EnvVar("METRICS__TOKIO__REPORT_INTERVAL", since="0.12.0")] = (
        None
    )


class UiSettings(StrictModel):
    """The web UI and its OIDC client. Variables of the UI are read as they are."""

    client_id: Annotated[Text, EnvVar("UI__OPENID_CLIENT_ID", form="raw")] = "lakekeeper"
    provider_uri: Annotated[HttpUrl | None, EnvVar("UI__OPENID_PROVIDER_URI", form="raw")] = None
    scope: Annotated[Text | None, EnvVar("UI__OPENID_SCOPE", form="raw")] = None
    resource: Annotated[Text | None, EnvVar("UI__OPENID_RESOURCE", form="raw")] = None
    redirect_path: Annotated[_Path | None, EnvVar("UI__OPENID_REDIRECT_PATH", form="raw")] = None
    post_logout_redirect_path: Annotated[_Path | None, EnvVar("UI__OPENID_POST_LOGOUT_REDIRECT_PATH", form="raw")] = (
        None
    )
    token_type: Annotated[Literal["id_token", "access_token"] | None, EnvVar("UI__OPENID_TOKEN_TYPE", form="raw")] = (
        None
    )
    surveys: Annotated[bool | None, EnvVar("UI__ENABLE_SURVEYS", since="0.12.3", form="raw")] = None
