"""Types of names on Azure storage: accounts, containers and hosts, as Lakekeeper checks them."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator


def _require_match(pattern: str, rule: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(rule)
        return value

    return AfterValidator(check)


AdlsAccountName = Annotated[
    str, _require_match(r"[a-z0-9]{3,24}", "a storage account has 3 to 24 lower-case letters and digits")
]
AdlsContainerName = Annotated[
    str,
    _require_match(
        r"(?!.*--)[a-z0-9][a-z0-9-]{1,61}[a-z0-9]",
        "a filesystem has 3 to 63 lower-case letters, digits and single `-`, which is not first or last",
    ),
]
"""Name of a container, which the Data Lake API calls a filesystem."""
AdlsHost = Annotated[str, _require_match(r"[A-Za-z0-9.-]+", "a host looks like `dfs.core.windows.net`")]
