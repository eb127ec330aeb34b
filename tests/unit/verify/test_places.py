"""Which warehouses and roles a stack's state has."""

from __future__ import annotations

from typing import Any, cast

import pytest
from lakewright.verify.session.places import places_of

ROLE = "arn:aws:iam::123456789012:role/lakewright/acme"


class Backend:
    """A backend with the state of one stack with one warehouse."""

    def __init__(self, storage: dict[str, Any]) -> None:
        self._storage = storage

    def export(self, _project: str, _stack: str) -> dict[str, Any]:
        outputs = {"name": "executions", "storage": {"type": "s3", "bucket": "lake"} | self._storage}
        kind = "pulumi-python:dynamic/lakekeeper:Warehouse"
        return {"deployment": {"resources": [{"type": kind, "id": "1", "outputs": outputs}]}}


@pytest.mark.parametrize(
    ("storage", "roles"),
    [
        ({"assume_role_arn": ROLE}, (ROLE,)),
        ({"flavor": "aws", "assume_role_arn": ROLE, "sts_role_arn": ROLE}, (ROLE,)),
        ({"flavor": "s3-compat", "endpoint": "https://store.example", "sts_role_arn": ROLE}, ()),
    ],
)
def test_only_roles_on_aws_are_read(storage: dict[str, Any], roles: tuple[str, ...]) -> None:
    (place,) = places_of(cast(Any, Backend(storage)), "lake", "acme")

    assert place.role_arns == roles
