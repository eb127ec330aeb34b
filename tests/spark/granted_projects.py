"""The two sides of a migration with grants: a project each, with a warehouse and roles."""

from __future__ import annotations

from dataclasses import dataclass

from lakewright_spark.catalog import CatalogConfig
from lakewright_spark.migration.endpoint import Endpoint
from lakewright_spark.migration.grant_catalog import GrantCatalog, ObjectKey
from lakewright_spark.migration.ledger import CarriedGrant
from lakewright_spark.pyiceberg_client.catalog import open_catalog
from migration_catalogs import build_rows

ORDERS: ObjectKey = ("table", ("sales", "orders"))
SALES: ObjectKey = ("namespace", ("sales",))
WAREHOUSE: ObjectKey = ("warehouse", ())


@dataclass(frozen=True)
class Side:
    """A project with one warehouse, the role `analysts`, and perhaps further roles."""

    config: CatalogConfig
    roles: dict[str, str]
    """IDs by name."""
    operator: str = "oidc~operator"
    """User that creates the objects, and so has privileges on them."""

    @property
    def grants(self) -> GrantCatalog:
        return GrantCatalog(Endpoint.open(self.config, self.config.warehouses[0].name))

    def grant(self, key: ObjectKey, privilege: str, *, user: str = "", role: str = "") -> None:
        grant = CarriedGrant(privilege, "user", user) if user else CarriedGrant(privilege, "role", self.roles[role])
        self.grants.change(self.grants.list_paths([("sales",)])[key], writes=[grant])

    def list_grants(self, key: ObjectKey) -> set[tuple[str, str]]:
        """Return privileges with the user, or with the name of the role. The operator's privileges are left out."""
        names = {role: name.casefold() for name, role in self.roles.items()}
        assigned = self.grants.read(self.grants.list_paths([("sales",)])[key])
        return {
            (grant.privilege, names.get(grant.principal, grant.principal))
            for grant in assigned
            if grant.principal != self.operator
        }


def fill_sides(source: Side, target: Side, ann: str = "oidc~ann", bob: str = "oidc~bob") -> None:
    """Create a table in the source with grants of each kind on each level. The target has a grant to `bob`."""
    catalog = open_catalog(source.config, source.config.warehouses[0].name)
    catalog.create_namespace("sales")
    catalog.create_table("sales.orders", build_rows(3).schema).append(build_rows(3))
    source.grant(WAREHOUSE, "describe", role="analysts")
    source.grant(SALES, "select", user=ann)
    source.grant(ORDERS, "modify", role="analysts")
    source.grant(ORDERS, "select", role="auditors")
    open_catalog(target.config, target.config.warehouses[0].name).create_namespace("sales")
    target.grant(SALES, "describe", user=bob)
