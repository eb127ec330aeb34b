"""The JSON of a response of Lakekeeper, with an error that names the call for a key that is not in it."""

from __future__ import annotations

import json
from typing import Any

import httpx

from lakewright.lakekeeper.api.connection.errors import BadResponseError, Call


class ResponseBody(dict[str, Any]):
    """An object of a response. A missing key raises BadResponseError instead of KeyError."""

    __slots__ = ("call",)
    call: Call

    def __missing__(self, key: str) -> Any:
        """Raise BadResponseError for a key that the response does not have."""
        raise BadResponseError(
            f"{self.call} responded without `{key}`. Is this a Lakekeeper server of a supported version?"
        )


def parse_json(call: Call, http_response: httpx.Response) -> Any:
    """Return the JSON of a response, with objects as `ResponseBody`; None if it is not JSON or nested too deeply."""

    def read(members: dict[str, Any]) -> ResponseBody:
        body = ResponseBody(members)
        body.call = call
        return body

    try:
        return json.loads(http_response.content, object_hook=read)
    except (ValueError, RecursionError):
        return None
