r"""Escapes for text from elsewhere: terminals and CI systems do not act on it, and JSON keeps its meaning.

Escapes have the form of JSON (`\u001b`), so that a JSON document that is printed through a stream keeps its
values. They are not escaped again, so text may be escaped more than once.
"""

from __future__ import annotations

import re

_INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff"
"""Characters that change the direction of text, end lines, or are not displayed."""
UNSAFE = re.compile(f"[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\ud800-\\udfff{_INVISIBLE}]")
"""Control characters, and characters that no reader sees. Line breaks and tabs are not among them."""
_BREAKS = re.compile(r"[\t\n]")
_HASH_COMMAND = re.compile(r"#(?=#(?:vso|teamcity)?\[)", re.IGNORECASE)
"""Commands of Azure Pipelines, TeamCity and older GitHub runners, which search the whole line."""
_LINE_COMMAND = re.compile(r"^([^\S\n]*):(?=:)", re.MULTILINE)
"""A workflow command of GitHub Actions. Its runner ignores white space before it (`ActionCommand.TryParseV2`)."""


def escape_text(text: str, *, line_start: str = "") -> str:
    """Return a text of one or more lines without characters and words that terminals or CI systems act on.

    Args:
        text: The text.
        line_start: Text before it on its first line.
    """
    text = UNSAFE.sub(_to_escape, text)
    if "##" in text:
        text = _HASH_COMMAND.sub(_to_escape, text)
    if ":" not in text:
        return text
    before = line_start.lstrip()
    if before == ":" and text.startswith(":"):
        text = _to_escape(":") + text[1:]
    return _LINE_COMMAND.sub(
        lambda match: match[0] if before and match.start() == 0 else f"{match[1]}{_to_escape(':')}", text
    )


def escape_line(text: object) -> str:
    """Return a value as one line: line breaks and tabs are escaped, too."""
    return escape_text(_BREAKS.sub(lambda match: {"\t": "\\t", "\n": "\\n"}[match[0]], str(text)))


def indent_continuation(text: str) -> str:
    """Return a message whose second and later lines are indented, so that none looks like a message of its own."""
    return text.replace("\n", "\n  ")


def _to_escape(character: re.Match[str] | str) -> str:
    """Return a character as JSON escapes it: beyond 16 bits as a pair of surrogates."""
    units = character[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[start : start + 2].hex()}" for start in range(0, len(units), 2))
