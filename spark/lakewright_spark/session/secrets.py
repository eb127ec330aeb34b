"""Keep secrets among Spark's properties off command lines and away from executors without authentication."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, datetime

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import TokenAuth, TokenFileAuth
from lakewright_spark.catalog.config import REDACTION
from lakewright_spark.errors import IdentityError
from lakewright_spark.times import format_time

REDACTION_KEY = "spark.redaction.regex"
EVENT_LOG_KEY = "spark.eventLog.enabled"
_NAMED_AS_SECRETS = re.compile(REDACTION[REDACTION_KEY])
_NEEDED = ("spark.authenticate", "spark.network.crypto.enabled")


def split_secrets(properties: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return the properties that may appear on a command line, and the properties with names of secrets."""
    secret = {key: value for key, value in properties.items() if _NAMED_AS_SECRETS.search(key) and key != REDACTION_KEY}
    public = {key: value for key, value in properties.items() if key not in secret}
    return public, secret


def check_executors(master: str, secrets: Mapping[str, str], properties: Mapping[str, str]) -> None:
    """Refuse to send the catalog's secrets to executors on other machines unless Spark encrypts them.

    Tasks carry the properties of their session, so that every executor gets the credentials of the catalog.

    Args:
        master: Master URL of the cluster.
        secrets: Secrets from `CatalogConfig.spark_secrets`; without secrets, nothing is refused.
        properties: All properties of the application, including `spark-defaults.conf`.

    Raises:
        IdentityError: A required setting is not on.
    """
    if not secrets or master.startswith("local"):
        return
    if missing := [name for name in _NEEDED if properties.get(name, "").lower() != "true"]:
        raise IdentityError(
            f"master {master}: executors receive the catalog's credential with their tasks: expected "
            f"{' and '.join(f'{name}=true' for name in _NEEDED)}, found {' and '.join(missing)} not set. "
            "Set both (with --conf or in spark-defaults.conf; on spark:// also the cluster's "
            "spark.authenticate.secret, in a spark-defaults.conf of mode 0600), or use a local master"
        )


def check_redaction(address: str, secrets: Mapping[str, str], pattern: str | None) -> None:
    """Refuse to send secrets to a Spark Connect server that would show them in its pages and logs.

    Args:
        address: The server's.
        secrets: Properties that the session is to get.
        pattern: The server's `spark.redaction.regex`, which only the server itself can set; None if it does not say.

    Raises:
        IdentityError: The pattern does not match the name of a secret, or has syntax that only Java reads.
    """
    if pattern is None or not secrets:
        return
    try:
        hides = re.compile(pattern)  # (?i) means the same to Java
    except re.error as error:
        raise IdentityError(
            f"{address}: expected a server that hides {', '.join(sorted(secrets))} in its pages and logs, found "
            f"{REDACTION_KEY}={pattern}, which could not be read ({error}): set "
            f"{REDACTION_KEY}={REDACTION[REDACTION_KEY]} in the server's properties"
        ) from None
    if logged := sorted(key for key in secrets if not hides.search(key)):
        raise IdentityError(
            f"{address}: expected a server that hides {', '.join(logged)} in its pages and logs, found "
            f"{REDACTION_KEY}={pattern}: set {REDACTION_KEY}={REDACTION[REDACTION_KEY]} in the server's properties"
        )


def check_event_log(address: str, secrets: Collection[str], enabled: str | None) -> None:
    """Refuse to send secrets to a Spark Connect server that writes an event log.

    Spark writes a session's properties into the events of its jobs, and applies its pattern only to properties that the
    server itself has (`EventLoggingListener.redactProperties`). Spark Connect does not tell which secrets it has.

    Args:
        address: The server's.
        secrets: Names of the secrets that the session is to get.
        enabled: The server's `spark.eventLog.enabled`.

    Raises:
        IdentityError: The server writes an event log.
    """
    if secrets and (enabled or "false").strip().lower() != "false":
        raise IdentityError(
            f"{address}: expected a server without an event log, which would have {', '.join(sorted(secrets))} of this "
            f"session in the events of its jobs, found {EVENT_LOG_KEY}={enabled}: turn it off, or let the "
            "server read the credential, as computing units do"
        )


NEVER = datetime.max.replace(tzinfo=UTC)


def expiry(token: str) -> datetime | None:
    """Return when a JWT expires (UTC), NEVER without an expiry, or None if the token is no JWT."""
    import jwt  # noqa: PLC0415 - slow to load, and only some catalogs have tokens

    try:
        claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
        return datetime.fromtimestamp(claims["exp"], UTC) if "exp" in claims else NEVER
    except (jwt.InvalidTokenError, TypeError, ValueError, OverflowError):
        return None


def check_before_start(config: CatalogConfig, deadline: datetime | None, now: datetime | None = None) -> None:
    """Refuse a Spark job whose token expires before the job ends. Spark reads the token once, at the start.

    Raises:
        IdentityError: The token has expired, or a token file may expire before the job's deadline.
    """
    if not isinstance(config.auth, TokenAuth | TokenFileAuth):
        return
    renewed = isinstance(config.auth, TokenFileAuth)
    token_source = config.auth.path if isinstance(config.auth, TokenFileAuth) else config.auth.token
    end = expiry(config.auth.secret_options()["token"])
    if end is None:
        if renewed:
            raise IdentityError(
                f"the token in {token_source} is no JWT, so its expiry is unknown; a Spark job "
                "needs a token that outlives it"
            )
        return
    now = now or datetime.now(UTC)
    if end <= now:
        raise IdentityError(f"the token in {token_source} expired at {format_time(end)}. Provide a new token")
    if end == NEVER or (deadline is None and not renewed):
        return
    if deadline is None or deadline >= end:
        until = "has no deadline" if deadline is None else f"may run until {format_time(deadline)}"
        raise IdentityError(
            f"the job {until}, but the token in {token_source} expires at {format_time(end)} and Spark reads "
            f"no later token: give a deadline below {int((end - now).total_seconds())} s, or a token with a longer "
            "lifetime"
        )
