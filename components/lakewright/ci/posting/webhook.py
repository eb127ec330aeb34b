"""A message to a Slack-compatible webhook. Its URL is a secret: it is in no message and no error."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from lakewright.ci.errors import PostError, SettingError
from lakewright.http.responses import retry_after
from lakewright.http.retry import RetryableError, RetryPolicy
from lakewright.names.host_kinds import leaves_without_tls

VARIABLE = "LAKEWRIGHT_WEBHOOK_URL"
"""Environment variable with the webhook's URL."""


def post_message(environ: Mapping[str, str], text: str, retry: RetryPolicy | None = None) -> None:
    """Post `{"text": ...}` to the webhook, as Slack, Mattermost and others expect. Raises SettingError, PostError."""
    url = environ.get(VARIABLE, "").strip()
    if not _is_sendable(url):
        description = "nothing" if not url else "another value, which is not shown"
        raise SettingError(
            f"environment variable {VARIABLE}: expected the `https://` URL of a webhook, found {description}"
        )
    (retry or RetryPolicy()).run(lambda: _post(url, text))


def _is_sendable(url: str) -> bool:
    try:
        return url.startswith(("https://", "http://")) and not leaves_without_tls(url)
    except ValueError:  # no URL
        return False


def _post(url: str, text: str) -> None:
    try:
        response = httpx.post(url, json={"text": text}, timeout=30.0)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise RetryableError(_make_error(f"did not respond ({type(error).__name__})")) from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise _make_error(f"did not respond ({type(error).__name__})") from None
    if response.status_code == 429:
        raise RetryableError(_make_error("responded with 429"), retry_after(response.headers.get("retry-after", "")))
    if not response.is_success:
        raise _make_error(f"responded with {response.status_code}")


def _make_error(problem: str) -> PostError:
    return PostError(f"the webhook of {VARIABLE} {problem}; expected it to take the message. Check the URL.")
