"""ViewArgs: the properties of a view, and whether a change of each updates or replaces the view."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ValidationInfo, ValidatorFunctionWrapHandler, WrapValidator
from typing_extensions import override

from lakewright.lakekeeper.api.catalog.namespaces import Path
from lakewright.lakekeeper.provider.inputs import CreateOnly, Replace, ResourceInputs, ServerKeeps, Update, tidy
from lakewright.lakekeeper.table.schema.columns import OBSERVED, Columns, is_observed
from lakewright.lakekeeper.table.schema.properties import ViewProperties
from lakewright.lakekeeper.view.sql import SqlByDialect
from lakewright.names.types import NamespacePath, TableName, namespace_parts


def _accept_observed(path: Any, check: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
    """Check a declared name. A view on a server may have no default namespace, which is empty text."""
    return path if is_observed(info) else check(path)


DefaultNamespace = Annotated[NamespacePath, WrapValidator(_accept_observed)]


class ViewArgs(ResourceInputs):
    """Properties of a view."""

    warehouse_id: Annotated[str, Replace()]
    """Warehouse that the view is in."""
    namespace: Annotated[NamespacePath, Update(via="rename")]
    """Namespace that the view is in, with dots between its levels."""
    name: Annotated[TableName, Update(via="rename")]
    """Name of the view. A change renames the view in place."""
    columns: Annotated[Columns, Update(via="commit")]
    """The columns that the query returns, in order."""
    sql: Annotated[SqlByDialect, Update(via="commit")]
    """Query by SQL dialect: `{"spark": "SELECT ...", "trino": "SELECT ..."}`."""
    default_catalog: Annotated[str | None, Update(via="commit")] = None
    """Catalog of table names in the query that have none. Default: the catalog in which an engine has the view."""
    default_namespace: Annotated[DefaultNamespace | None, Update(via="commit")] = None
    """Namespace of table names in the query that have none. Default: the view's namespace."""
    properties: Annotated[ViewProperties, Update(via="commit")] = {}
    """Declared view properties. Other properties, which engines write, are not changed."""
    protected: Annotated[bool | None, Update(via="protection"), ServerKeeps()] = None
    """Whether the server refuses to drop the view. If left out, the server keeps its value."""
    adopt: Annotated[bool, CreateOnly()] = False
    """Take over an existing view of this name, and change it to match the declaration."""

    @classmethod
    @override
    def from_state(cls, props: dict[str, Any]) -> Self:
        return cls.model_validate(tidy(props), extra="ignore", context=OBSERVED)

    @property
    def path(self) -> Path:
        """The namespace's levels, outermost first."""
        return tuple(namespace_parts(self.namespace))

    @property
    def default_path(self) -> Path:
        """Levels of the namespace of names in the query that have none."""
        return tuple(namespace_parts(self.default_namespace)) if self.default_namespace else self.path
