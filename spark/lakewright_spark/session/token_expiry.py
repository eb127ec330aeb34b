"""What a bearer token says of its own end. Signatures are the catalog's to check; here it is a matter of time alone."""

from __future__ import annotations

from datetime import UTC, datetime

import jwt

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.catalog.auth import TokenAuth, TokenFileAuth
from lakewright_spark.errors import IdentityError

NEVER = datetime.max.replace(tzinfo=UTC)


def expiry(token: str) -> datetime | None:
    """When a JWT ends (UTC), NEVER if it does not say so; None if the token is no JWT and nobody can tell."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
        return datetime.fromtimestamp(claims["exp"], UTC) if "exp" in claims else NEVER
    except (jwt.InvalidTokenError, TypeError, ValueError, OverflowError):
        return None


def check_before_start(config: CatalogConfig, deadline: datetime | None, now: datetime | None = None) -> None:
    """Refuse a Spark job whose token ends before the job does: Spark reads it once, at the start.

    A token that has ended is refused. Of a token file, which somebody renews but Spark never reads again, the job's
    deadline must lie before the end of the token that is in it now. Raises IdentityError.
    """
    if not isinstance(config.auth, TokenAuth | TokenFileAuth):
        return
    renewed = isinstance(config.auth, TokenFileAuth)
    place = config.auth.path if isinstance(config.auth, TokenFileAuth) else config.auth.token
    end = expiry(config.auth.secret_options()["token"])
    if end is None:
        if renewed:
            raise IdentityError(f"the token in {place} is no JWT, so nobody can tell whether it outlives a Spark job")
        return
    now = now or datetime.now(UTC)
    if end <= now:
        raise IdentityError(f"the token in {place} ended at {_told(end)}: a new one is needed")
    if end == NEVER or (deadline is None and not renewed):
        return
    if deadline is None or deadline >= end:
        until = "has no deadline" if deadline is None else f"may run until {_told(deadline)}"
        raise IdentityError(
            f"the job {until}, but the token in {place} ends at {_told(end)} and Spark cannot read the next one: "
            f"give a deadline below {int((end - now).total_seconds())} s, or a token that lives longer"
        )


def _told(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
