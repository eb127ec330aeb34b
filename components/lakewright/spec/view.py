"""Views of a spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, TypeAdapter, model_validator

from lakewright.field_map.marks import NotExpressibleError, NoWayBack, Sets
from lakewright.lakekeeper.table.schema.columns import Columns
from lakewright.lakekeeper.table.schema.properties import ViewProperties, write_property_mistakes
from lakewright.lakekeeper.view.sql import SqlByDialect
from lakewright.names.table_name import QualifiedName, parse_table_name
from lakewright.names.types import NamespacePath, TableName
from lakewright.spec.adoption import Adoption
from lakewright.validation.strict_model import StrictModel

_VIEW_NAME = TypeAdapter[str](TableName)
_RENAMED_OUTSIDE = "the view was renamed outside the stack: rename it back, or declare `renamed_from`"
_ENGINE_PROPERTIES = frozenset(
    {"owner", "created-at", "engine_version", "create_engine_version", "spark.query-column-names"}
)
"""Properties that engines write to each view."""


def _normalize_view_name(text: str) -> str:
    name = parse_table_name(text)
    _VIEW_NAME.validate_python(name.name)
    return str(name)


def _read_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the properties to declare: neither properties that engines write themselves, nor refused properties."""
    return {
        key: value
        for key, value in properties.items()
        if key not in _ENGINE_PROPERTIES and not [*write_property_mistakes({key: value})]
    }


def _read_default_namespace(name: str | None) -> str | None:
    """Return the default namespace to declare."""
    if name == "":
        raise NotExpressibleError("the view has no default namespace. Run `up`, which sets the declared namespace")
    return name


class ViewSpec(StrictModel):
    """A view that the stack creates and changes in place, and drops when it is no longer declared."""

    refused_properties: ClassVar[Mapping[str, str]] = {"namespace": _RENAMED_OUTSIDE}
    """Properties of `View` that the wiring derives from `name`, with what `drift --accept` says."""

    name: Annotated[
        str,
        AfterValidator(_normalize_view_name),
        Sets("name", to_args=lambda name: parse_table_name(name).name, reads="full_name", refusal=_RENAMED_OUTSIDE),
    ]
    """WAREHOUSE.NAMESPACE.VIEW; quote a part that contains a dot."""
    renamed_from: Annotated[
        Annotated[str, AfterValidator(_normalize_view_name)] | None, NoWayBack("servers do not keep earlier names")
    ] = None
    """Earlier name in this spec, in the same warehouse. The view is renamed in place. Its namespace can change only on
    servers without OpenFGA."""
    columns: Annotated[
        Columns,
        Sets("columns", to_args=lambda columns: [column.model_dump(exclude_none=True) for column in columns]),
    ]
    """The columns that the query returns, in order."""
    sql: Annotated[SqlByDialect, Sets("sql")]
    """Query by SQL dialect. An engine reads the query of its own dialect only, such as `spark` or `trino`."""
    default_catalog: Annotated[str | None, Sets("default_catalog")] = None
    """Catalog of table names in the query that have none. Default: the catalog in which an engine has the view."""
    default_namespace: Annotated[NamespacePath | None, Sets("default_namespace", from_live=_read_default_namespace)] = (
        None
    )
    """Namespace of table names in the query that have none, one of the warehouse's `namespaces`. Default: the view's
    namespace."""
    properties: Annotated[ViewProperties, Sets("properties", from_live=_read_properties)] = {}
    """View properties. Properties that engines set are kept."""
    protected: Annotated[bool | None, Sets("protected", is_usual=lambda protected: not protected)] = None
    """Lakekeeper's protection: the view cannot be dropped without force."""
    adopt: Annotated[
        Adoption, Sets("adopt", to_args=bool), NoWayBack("it applies only while the stack takes the view over")
    ] = False
    """Adopt an existing view of this name, as `adopt` of its warehouse does; `{until: DAY}` permits it for a time."""

    @property
    def path(self) -> QualifiedName:
        """Parsed name."""
        return parse_table_name(self.name)

    @model_validator(mode="after")
    def _stays_in_its_warehouse(self) -> Self:
        if self.renamed_from and parse_table_name(self.renamed_from).warehouse != self.path.warehouse:
            raise ValueError("`renamed_from` must be in the same warehouse: views cannot move between warehouses")
        return self
