"""Settings from environment variables: timeouts in seconds, size of responses, tracebacks, an accepted server."""

import os


def _number(name: str, default: float, unit: str = "seconds") -> float:
    value = os.environ.get(name, "")
    try:
        return float(value) if value else default
    except ValueError:
        raise ValueError(f"{name} must be a number of {unit}") from None


CONNECT_TIMEOUT_SECONDS = 5.0
"""Seconds until a server that does not accept the connection counts as unreachable."""


ACCEPTED_SERVER_ID = "LAKEWRIGHT_ACCEPT_SERVER_ID"
"""Environment variable: id of a server that a stack's catalog was restored or migrated to."""


def read_accepted_server_id() -> str | None:
    """Return the id of a server that is accepted although the state has another id."""
    return os.environ.get(ACCEPTED_SERVER_ID) or None


def answer_within() -> float:
    """Return the time limit of a response in seconds. Lakekeeper's own limit is 30 s."""
    return _number("LAKEWRIGHT_ANSWER_WITHIN", 35)


def answer_limit() -> int:
    """Return the size limit of a response in bytes, after decompression. Table metadata may be large."""
    return int(_number("LAKEWRIGHT_ANSWER_LIMIT", 64, "MiB") * (1 << 20))


def validation_within() -> float:
    """Return the time limit in seconds of a call in which Lakekeeper probes a storage."""
    return _number("LAKEWRIGHT_VALIDATION_WITHIN", 90)


def role_propagation() -> float:
    """Return how many seconds to wait until AWS allows a new IAM role to be assumed everywhere."""
    return _number("LAKEWRIGHT_ROLE_PROPAGATION", 90)


def purge_wait() -> float:
    """Return how many seconds to wait for the server's purge tasks before a warehouse is deleted."""
    return _number("LAKEWRIGHT_PURGE_WAIT", 600)


def tracebacks() -> bool:
    """Return whether errors have a traceback, for developers of the provider."""
    return os.environ.get("LAKEWRIGHT_TRACEBACKS", "") not in ("", "0")
