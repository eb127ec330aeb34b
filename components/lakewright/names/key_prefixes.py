"""Key prefixes of a bucket: whether they overlap."""


def overlaps(prefix: str, other: str) -> bool:
    """Return whether one key prefix is within the other. An empty prefix is the whole bucket."""
    return is_within(prefix, other) or is_within(other, prefix)


def is_within(prefix: str, other: str) -> bool:
    """Return whether a key prefix equals the other one or is below it."""
    parts, other_parts = _parts(prefix), _parts(other)
    return parts[: len(other_parts)] == other_parts


def _parts(prefix: str) -> list[str]:
    return [part for part in prefix.strip().split("/") if part]
