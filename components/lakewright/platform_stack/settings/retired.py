"""Variables of former releases and their successors, and variables that the stack sets itself."""

from collections.abc import Mapping

RETIRED: Mapping[str, str] = {
    "QUEUE_CONFIG__MAX_RETRIES": "each warehouse's task queues (`task_queues` of a tenant)",
    "QUEUE_CONFIG__MAX_AGE": "`max-seconds-since-last-heartbeat` of each warehouse's task queues",
    "QUEUE_CONFIG__POLL_INTERVAL": "`server.tasks.poll_interval`",
    "SERVER_ID": "nothing: the server generates its id at bootstrap",
    "METRICS_PORT": "nothing: the stack sets the port of metrics, 9000",
    "TASK_TABULAR_EXPIRATION_WORKERS": "`server.tasks.soft_deletion_workers`",
}
"""Successors of names that current releases do not read, or read for compatibility only."""

SET_BY_STACK: Mapping[str, str] = {
    "BASE_URI": "`gateway.url`",
    "USE_X_FORWARDED_HEADERS": "`false`, because BASE_URI is set",
    "LISTEN_PORT": "8181",
    "BIND_IP": "0.0.0.0",  # noqa: S104 - within a pod
    "METRICS__PORT": "9000",
    "PG_SSL_ROOT_CERT": "`database.postgres.ca_bundle`",
    "PG_DATABASE_URL_READ": "`database.postgres`, by its parts",
    "PG_DATABASE_URL_WRITE": "`database.postgres`, by its parts",
    "KAFKA_CONFIG": "`server.events.kafka`",
    "KAFKA_CONFIG_FILE": "`server.events.kafka`",
    "UI__LAKEKEEPER_URL": "`management.url`",
    "DEBUG__MIGRATE_BEFORE_SERVE": "the migration Job, which runs before the server",
    "DEBUG__AUTO_SERVE": "the command of the pod",
}
"""Source of each variable that the stack sets, by name."""

SET_WITHOUT_PREFIX: Mapping[str, str] = {
    "RUST_LOG": "`server.logs.level`",
    "SSL_CERT_FILE": "`server.ca_bundle`",
    "SSL_CERT_DIR": "`server.ca_bundle`",
    "AWS_ROLE_ARN": "`aws.role_arn`",
    "AWS_WEB_IDENTITY_TOKEN_FILE": "`aws.role_arn`",
}
"""Source of each variable that the stack sets, by name without Lakekeeper's prefix."""
