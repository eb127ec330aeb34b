"""Patches: JSON merge patches (RFC 7396) and, as far as needed, JSON patches (RFC 6902)."""

from __future__ import annotations

from typing import Any, cast

from lakewright_sandbox.cluster.fields import Json
from lakewright_sandbox.cluster.status import ApiStatusError


def merge_patch(live: Any, patch: Any) -> Any:
    """Return a document after a merge patch; null removes a key."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(cast(Json, live)) if isinstance(live, dict) else {}
    for key, value in cast(Json, patch).items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def json_patched(live: Json, patch: list[Json]) -> Json:
    """Return a document after `add`, `replace` and `remove` of keys, in order."""
    for operation in patch:
        *above, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
        node: Any = live
        for part in above:
            node = node[part]
        if not isinstance(node, dict) or operation["op"] not in ("add", "replace", "remove"):
            raise ApiStatusError(422, "the server rejected our request due to an error in our request")
        if operation["op"] == "remove":
            del node[last]
        else:
            node[last] = operation["value"]
    return live
