"""DeletionGuard: depends on all else of a tenant, is therefore deleted first, and refuses while there are tables."""

from collections.abc import Mapping
from typing import Annotated

import pulumi
from pulumi.dynamic import Resource
from typing_extensions import override

from lakewright.lakekeeper import warehouse_removal
from lakewright.lakekeeper.api import contents
from lakewright.lakekeeper.api.client import Client
from lakewright.lakekeeper.declared import Deletable, StateOnly
from lakewright.lakekeeper.errors import CannotCount, HoldsTables
from lakewright.lakekeeper.options import ServerInput, given
from lakewright.lakekeeper.provider import Found, Known, LakekeeperProvider
from lakewright.types import Deletion


class DeletionGuardArgs(Deletable):
    """What is guarded: warehouse ids by warehouse name."""

    warehouses: Annotated[dict[str, str], StateOnly()]


class DeletionGuardProvider(LakekeeperProvider[DeletionGuardArgs]):
    """Is nothing on the server; looks when it is deleted."""

    args = DeletionGuardArgs

    @override
    def make(self, client: Client, new: DeletionGuardArgs) -> tuple[str, Found[DeletionGuardArgs]]:
        return "guard", Found(new)

    @override
    def find(self, client: Client, known: Known[DeletionGuardArgs]) -> Found[DeletionGuardArgs] | None:
        return Found(known.declared)

    @override
    def change(
        self, client: Client, known: Known[DeletionGuardArgs], new: DeletionGuardArgs
    ) -> Found[DeletionGuardArgs]:
        return Found(new)

    def remove(self, client: Client, known: Known[DeletionGuardArgs]) -> None:
        state = known.declared
        if state.deletion != "protect":
            return
        reasons: list[str] = []
        uncounted: list[str] = []
        for name, warehouse_id in sorted(state.warehouses.items()):
            try:
                tables = warehouse_removal.held(client, warehouse_id, name)
            except CannotCount as error:
                uncounted.append(str(error))
                continue
            if tables:
                reasons.append(f"warehouse `{name}` holds {contents.described(tables)}")
        if reasons:
            raise HoldsTables(
                f"nothing was destroyed, because `deletion` is `protect` and at {client.endpoint}"
                f" {'; '.join([*reasons, *uncounted])}. Drop the tables, or set `deletion` to `purge` (removes them)"
                " or `retain` (keeps them) and run `up` before destroying."
            )
        if uncounted:
            raise CannotCount(f"nothing was destroyed: {'; '.join(uncounted)}")


class DeletionGuard(Resource, module="lakekeeper", name="DeletionGuard"):
    """Guards warehouses against destruction. Give it `depends_on` everything that is to stay when it refuses."""

    def __init__(
        self,
        resource_name: str,
        *,
        server: ServerInput,
        warehouses: pulumi.Input[Mapping[str, pulumi.Input[str]]],
        deletion: pulumi.Input[Deletion] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = given(server=server, warehouses=warehouses, deletion=deletion)
        super().__init__(DeletionGuardProvider(), resource_name, props, opts)
