"""What the environment may tune: waiting times in seconds, the size of answers, tracebacks, an accepted server."""

import os


def _number(name: str, default: float, unit: str = "seconds") -> float:
    value = os.environ.get(name, "")
    try:
        return float(value) if value else default
    except ValueError:
        raise ValueError(f"{name} must be a number of {unit}") from None


CONNECT_WITHIN = 5.0
"""Seconds until a server that does not take the connection counts as unreachable."""


ACCEPTED_SERVER_ID = "LAKEWRIGHT_ACCEPT_SERVER_ID"
"""Environment variable: id of a server that a stack's catalog was restored or migrated to."""


def accepted_server_id() -> str | None:
    """The id of a server that is used although the state has another one."""
    return os.environ.get(ACCEPTED_SERVER_ID) or None


def answer_within() -> float:
    """How long a server may take to answer. Lakekeeper gives up after 30 s by itself."""
    return _number("LAKEWRIGHT_ANSWER_WITHIN", 35)


def answer_limit() -> int:
    """Bytes that an answer may have, after decompression; the metadata of a table may be large."""
    return int(_number("LAKEWRIGHT_ANSWER_LIMIT", 64, "MiB") * (1 << 20))


def validation_within() -> float:
    """How long Lakekeeper may take over a call in which it probes a storage."""
    return _number("LAKEWRIGHT_VALIDATION_WITHIN", 90)


def role_propagation() -> float:
    """How long a fresh IAM role may take until AWS lets it be assumed everywhere."""
    return _number("LAKEWRIGHT_ROLE_PROPAGATION", 90)


def purge_wait() -> float:
    """How long to wait for the server's purge tasks before a warehouse is deleted."""
    return _number("LAKEWRIGHT_PURGE_WAIT", 600)


def tracebacks() -> bool:
    """Whether errors come with a traceback: for whoever works on the provider itself."""
    return bool(os.environ.get("LAKEWRIGHT_TRACEBACKS"))
