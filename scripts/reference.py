"""Writes docs/reference/resources/ from the resources' models: `make docs`.

A resource's page has its example out of docs/examples/, every property with what a change of it does, and its outputs.
The text below a field describes the property.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
import types
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from lakewright import lakekeeper
from lakewright.lakekeeper.provider import inputs as declared
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "reference" / "resources"
EXAMPLES = ROOT / "docs" / "examples"

RESOURCES = (
    *("Bootstrap", "Project", "SharedProject", "Warehouse", "TaskQueueConfig", "Namespace", "Table", "View"),
    *("User", "Role", "RoleMembers", "Grant", "Grants", "DeletionGuard", "ExternalId"),
)


@dataclass(frozen=True)
class Property:
    """One row of a table."""

    name: str
    type: str
    default: str
    change: str
    text: str


@dataclass(frozen=True)
class Group:
    """The properties of a model that stands within another."""

    title: str
    text: str
    properties: list[Property]


@dataclass(frozen=True)
class Page:
    """The documentation of one resource."""

    name: str
    text: str
    adoption: str
    example: str
    groups: list[Group]
    outputs: list[Property]
    look_ups: list[tuple[str, str]]

    @property
    def slug(self) -> str:
        """Name of its files."""
        return _slug(self.name)


def pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    reference_pages = [_page(name) for name in RESOURCES if hasattr(lakekeeper, name)]
    templates = Environment(  # noqa: S701 - Markdown, out of our own sources
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    page, index = templates.get_template("reference.md.j2"), templates.get_template("reference_index.md.j2")
    return {f"{one.slug}.md": page.render(page=one) for one in reference_pages} | {
        "README.md": index.render(pages=reference_pages)
    }


def _slug(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")


def _page(name: str) -> Page:
    resource: type = getattr(lakekeeper, name)
    module = import_module(resource.__module__)
    providers = (one for one in vars(module).values() if inspect.isclass(one) and one.__name__ == f"{name}Provider")
    provider = next(providers)
    model: type[BaseModel] | None = provider.args if issubclass(provider, LakekeeperProvider) else None
    return Page(
        name=name,
        text=inspect.cleandoc(resource.__doc__ or ""),
        adoption=_adoption(model, getattr(provider, "natural_key", ())),
        example=(EXAMPLES / f"{_slug(name)}.py").read_text(encoding="utf-8").rstrip(),
        groups=list({one.title: one for one in _groups(model)}.values()) if model else [],
        outputs=list(_outputs(resource)),
        look_ups=list(_look_ups(name)),
    )


def _adoption(model: type[BaseModel] | None, key: tuple[str, ...]) -> str:
    """How what exists is found; empty for what cannot be adopted."""
    if model is None or "adopt" not in model.model_fields:
        return ""
    return f"`adopt=True` takes over what exists with the same {', '.join(f'`{name}`' for name in key)}."


def _groups(model: type[BaseModel], outer_models: tuple[type, ...] = ()) -> Iterator[Group]:
    """Return a model's own properties, then the properties of the models within it."""
    texts = read_texts(model)
    fields = {name: field for name, field in model.model_fields.items() if name not in _own(model)}
    properties = [
        Property(
            name,
            _type(field.annotation),
            _default(field),
            _change(field, nested=bool(outer_models)),
            _text(field, texts.get(name, "")),
        )
        for name, field in fields.items()
    ]
    title = "Properties" if not outer_models else f"`{model.__name__}`"
    yield Group(title, inspect.cleandoc(model.__doc__ or "") if outer_models else "", properties)
    visited = (*outer_models, model)
    for field in fields.values():
        for nested in _models(field.annotation):
            if nested not in visited and nested.__name__ != "ServerRef":
                yield from _groups(nested, visited)
                visited = (*visited, nested)


def _own(model: type[BaseModel]) -> set[str]:
    """Properties that the provider keeps for itself."""
    return {"credential_fingerprint", "declared_as"} & set(model.model_fields)


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    if inspect.isclass(annotation) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _type(annotation: Any) -> str:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if hasattr(annotation, "__metadata__"):
        return _type(arguments[0])
    if origin is Literal:
        return " or ".join(f"`{value!r}`" for value in arguments)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_type(one) for one in arguments if one is not types.NoneType))
    if origin in (list, tuple):
        return f"list of {_type(arguments[0])}"
    if origin is dict:
        return f"map of {_type(arguments[0])} to {_type(arguments[1])}"
    names = {"str": "text", "int": "integer", "bool": "boolean", "Any": "anything"}
    name = getattr(annotation, "__name__", str(annotation))
    return names.get(name, f"`{name}`")


def _default(field: Any) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined:
        return "none"
    return f"`{value.model_dump() if isinstance(value, BaseModel) else value!r}`"


def _text(field: Any, text: str) -> str:
    """Return the text below a field, and the server versions of its marks."""
    if since := declared.find_mark(field, declared.Since):
        text += f" From {since.version[0]}.{since.version[1]} on."
    if declared.find_mark(field, declared.NeedsOpenFga):
        text += " OpenFGA only."
    return text


def _change(field: Any, *, nested: bool) -> str:
    for mark in field.metadata:
        match mark:
            case declared.Replace():
                return "replaces"
            case declared.Update(via=call):
                return f"updates (`{call}`)"
            case declared.Rotate(via=call):
                return f"rotates (`{call}`)"
            case declared.StateOnly():
                return "changes the state only"
            case declared.CreateOnly():
                return "matters at creation only"
            case _:
                continue
    return "as the property that it is in" if nested else "updates"


def read_texts(model: type) -> dict[str, str]:
    """Return the text below each field, including fields of base classes."""
    texts: dict[str, str] = {}
    for base in reversed(model.__mro__):
        if base.__module__.startswith("lakewright"):
            texts |= _below(base)
    return texts


def _below(of: type) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(of))).body[0].body  # type: ignore[attr-defined]
    texts: dict[str, str] = {}
    for field, after in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and _is_text(after):
            texts[field.target.id] = " ".join(inspect.cleandoc(after.value.value).split())  # type: ignore[attr-defined]
    return texts


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _outputs(resource: type) -> Iterator[Property]:
    texts = _below(resource)
    for name, annotation in inspect.get_annotations(resource, eval_str=True).items():
        (inner,) = get_args(annotation)
        yield Property(name, _type(inner), "", "", texts.get(name, ""))
    for name, value in vars(resource).items():
        if isinstance(value, property):
            yield Property(name, "text", "", "", " ".join(inspect.cleandoc(value.__doc__ or "").split()))


def _look_ups(resource: str) -> Iterator[tuple[str, str]]:
    slug = _slug(resource)
    special = {
        "bootstrap": ("get_server_info",),
        "table": ("get_deleted_tables", "get_view", "get_views"),
        "warehouse": ("get_catalog_config",),
    }
    for name in (f"get_{slug}", f"get_{slug}s", *special.get(slug, ())):
        if name in lakekeeper.__all__:
            yield name, inspect.cleandoc(getattr(lakekeeper, name).__doc__ or "").splitlines()[0]


def main() -> None:
    PAGES.mkdir(parents=True, exist_ok=True)
    written = pages()
    for old in PAGES.glob("*.md"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (PAGES / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
