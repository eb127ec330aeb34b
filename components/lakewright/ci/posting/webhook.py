"""A message to a Slack-compatible webhook. Its URL is a secret: it is in no message and no error."""

from __future__ import annotations

from collections.abc import Mapping

import httpx

from lakewright.ci.errors import PostError, SettingError
from lakewright.lakekeeper.api.connection.responses import retry_after
from lakewright.lakekeeper.api.connection.retry import RetryableError, RetryPolicy
from lakewright.names.host_kinds import leaves_without_tls

VARIABLE = "LAKEWRIGHT_WEBHOOK_URL"
"""Environment variable with the webhook's URL."""


def post_message(environ: Mapping[str, str], text: str, retry: RetryPolicy | None = None) -> None:
    """Post `{"text": ...}` to the webhook, as Slack, Mattermost and others expect. Raises SettingError, PostError."""
    url = environ.get(VARIABLE, "").strip()
    if not _is_sendable(url):
        found = "nothing" if not url else "another value, which is not shown"
        raise SettingError(f"environment variable {VARIABLE}: expected the `https://` URL of a webhook, found {found}")
    (retry or RetryPolicy()).run(lambda: _post(url, text))


def _is_sendable(url: str) -> bool:
    try:
        return url.startswith(("https://", "http://")) and not leaves_without_tls(url)
    except ValueError:  # no URL
        return False


def _post(url: str, text: str) -> None:
    try:
        answer = httpx.post(url, json={"text": text}, timeout=30.0)
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise RetryableError(_error(f"did not answer ({type(error).__name__})")) from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
        raise _error(f"did not answer ({type(error).__name__})") from None
    if answer.status_code == 429:
        raise RetryableError(_error("answered 429"), retry_after(answer.headers.get("retry-after", "")))
    if not answer.is_success:
        raise _error(f"answered {answer.status_code}")


def _error(found: str) -> PostError:
    return PostError(f"the webhook of {VARIABLE} {found}; expected it to take the message. Check the URL.")
