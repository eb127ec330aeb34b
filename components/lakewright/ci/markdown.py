"""Markdown of GitHub and GitLab from unchecked texts: they add no markup, mention, link or image."""

from __future__ import annotations

import html
import re

from lakewright.terminal.escaping import UNSAFE

_STRUCTURE = re.compile(r"[|`*_~\[\]\\:@#!$]|(?<=www)\.", re.IGNORECASE)
"""Characters of markup. GitHub makes a link of `www.` without any."""


def format_inline_code(text: str) -> str:
    """Return a text as code within a line or a table's cell. Mentions and references in code are not followed."""
    return f"<code>{escape(text)}</code>" if text else ""


def clip(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text. An ellipsis at its end marks a cut."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def escape(text: str) -> str:
    """Return a text on one line, with an entity for each character that is structure in Markdown or HTML.

    CommonMark reads entities as text in all positions.
    """
    line = " ".join(UNSAFE.sub(" ", text).split())
    return _STRUCTURE.sub(lambda match: f"&#{ord(match[0])};", html.escape(line, quote=True))


def format_code_block(lines: list[str], language: str = "") -> str:
    """Return lines as a block of code. Its fence is longer than any row of backticks in the lines."""
    body = "\n".join(UNSAFE.sub(" ", line).replace("\n", " ").rstrip() for line in lines)
    longest = max((len(backticks) for backticks in re.findall(r"`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}"


def format_details(summary: str, body: str) -> str:
    """Return a body that opens on a click. `summary` has no structure, such as from `format_inline_code`."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


def format_table(head: list[str], rows: list[list[str]], numbers: int) -> str:
    """Return a table. The last column and the first are left-aligned, `numbers` columns between them right-aligned."""
    marks = ["---", *["--:"] * numbers, *["---"] * (len(head) - numbers - 1)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, marks, *rows))


def count_bytes(text: str) -> int:
    """Return the bytes of a text, which are at least its characters: servers limit either."""
    return len(text.encode())
