"""A provider for comparison, in a module: the SDK can pickle only about 300 by value before it recurses too deep."""

from __future__ import annotations

from typing import Any

from pulumi.dynamic import CreateResult, ReadResult, ResourceProvider


class Nothing(ResourceProvider):
    """A provider without calls, which leaves the cost of Pulumi's SDK and the engine."""

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult("nothing", props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        return ReadResult(id_, props)
