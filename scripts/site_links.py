"""A hook of MkDocs: links to files outside docs/ lead to the source repository. See mkdocs.yml."""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"\]\((\.\.?/[^)\s#]+)")


def replace_links(markdown: str, *, page: Any, config: Any, **_: Any) -> str:
    """Replace relative links that leave docs/ with addresses in the source repository."""
    folder = posixpath.dirname(page.file.src_uri)

    def replace(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join("docs", folder, match[1]))
        return match[0] if path.startswith("docs/") else f"]({config.repo_url}/{path}"

    return LINK.sub(replace, markdown)


on_page_markdown = replace_links
"""The name by which MkDocs finds the hook."""
