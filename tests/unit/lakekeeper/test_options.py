"""Resource options: an import is refused with a message, since Pulumi would fail without one."""

from __future__ import annotations

import inspect
from typing import Any

import pulumi
import pytest
from lakewright import lakekeeper
from pulumi.dynamic import Resource

NAMES = sorted(
    name
    for name in lakekeeper.__all__
    if name != "ExternalId"  # There is nothing outside the state to import.
    and issubclass(getattr(lakekeeper, name) if name[0].isupper() else object, Resource)
)


@pytest.mark.parametrize("name", NAMES)
def test_import_is_refused_with_the_alternative(name: str) -> None:
    resource: Any = getattr(lakekeeper, name)
    required = {
        key: "x"
        for key, parameter in inspect.signature(resource.__init__).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    }
    with pytest.raises(pulumi.RunError, match=r"`import_` \(the-id\) is not possible .* `adopt=True`"):
        resource("it", **required, opts=pulumi.ResourceOptions(import_="the-id"))
