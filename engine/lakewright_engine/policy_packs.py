"""Policy packs: the embedded engine runs none. It refuses them, because an update must not pass without its checks."""

from __future__ import annotations

import os

from lakewright_engine.model.errors import UnsupportedFeatureError
from lakewright_engine.operation import Operation

VARIABLE = "PULUMI_OPTION_POLICY_PACK"
"""The Pulumi CLI takes each option from an environment variable as well."""


def refuse_policy_packs(operation: Operation) -> None:
    """Raise UnsupportedFeatureError if the operation shall be checked by policy packs."""
    if operation.verb not in ("preview", "up"):
        return
    request_source = "--policy-pack" if operation.policy_packs else VARIABLE if os.environ.get(VARIABLE) else None
    if request_source:
        raise UnsupportedFeatureError(
            f"{request_source}: the embedded engine does not run policy packs, so nothing would be checked; "
            "use --engine pulumi"
        )
