"""A model whose JSON Schema has the docstrings of its fields, which are read from the source when it is asked for."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from typing_extensions import override


class DocumentedModel(BaseModel):
    """A model that describes its fields as `use_attribute_docstrings` does.

    Pydantic's option parses the source of each model at import: a fifth of the time of `lakewright spec validate`.
    """

    @override
    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Add the docstrings of fields as descriptions."""
        schema = handler(core_schema)
        properties: dict[str, dict[str, Any]] = handler.resolve_ref_schema(schema).get("properties", {})
        for ancestor in reversed(cls.__mro__):
            for field, docstring in _list_docstrings(ancestor):
                if field in properties and not cls.model_fields[field].description:
                    properties[field]["description"] = docstring
        return schema


def _list_docstrings(model: type) -> Iterator[tuple[str, str]]:
    """Yield the fields in the source of a class that a docstring follows."""
    if not issubclass(model, DocumentedModel):
        return
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    if not isinstance(definition, ast.ClassDef):
        return
    for field, text in pairwise(definition.body):
        match field, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(docstring))):
                yield name, inspect.cleandoc(docstring)
            case _:
                pass
