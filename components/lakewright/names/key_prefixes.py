"""Key prefixes of a bucket: whether one lies within another. The one rule for specs, records and pre-flights."""


def overlaps(prefix: str, other: str) -> bool:
    """Return whether one key prefix lies within the other. An empty one is the whole bucket."""
    return is_within(prefix, other) or is_within(other, prefix)


def is_within(prefix: str, other: str) -> bool:
    """Return whether a key prefix is the other one, or lies in it."""
    parts, others = _parts(prefix), _parts(other)
    return parts[: len(others)] == others


def _parts(prefix: str) -> list[str]:
    return [part for part in prefix.strip().split("/") if part]
