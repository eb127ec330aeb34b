"""Writes the signatures of the resource classes from their models: `make docs`.

A class takes an argument for each property of its model. The text below a property becomes the argument's line in the
docstring. A property without an argument gets one, with a type that follows from the model. Types that a resource class
already names are kept.
"""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

from lakewright import lakekeeper
from lakewright.lakekeeper.provider.base import LakekeeperProvider
from pydantic import BaseModel
from reference import RESOURCES, read_texts

WIDTH = 120
RESOURCE_NAME = "Name of the resource in the program, unique for its type."
OPTIONS = "Options of the resource."
LAST = ("adopt", "opts")
"""Arguments at the end of each signature."""
INTERNAL = frozenset({"credential_fingerprint", "declared_as", "stack"})
"""Properties that the provider or the resource class sets itself."""


def main() -> None:
    """Write the signatures into the modules of the resource classes."""
    for path, text in write_signatures().items():
        path.write_text(text, "utf-8")


def write_signatures() -> dict[Path, str]:
    """Return the text of each module of a resource class, with its signature up to date."""
    texts: dict[Path, str] = {}
    for name in RESOURCES:
        resource: type = getattr(lakekeeper, name)
        module = import_module(resource.__module__)
        provider: Any = getattr(module, f"{name}Provider")
        if LakekeeperProvider not in inspect.getmro(provider):
            continue
        path = Path(inspect.getfile(module))
        texts[path] = _rewrite(texts.get(path) or path.read_text("utf-8"), name, provider.args)
    return {path: _format(text) for path, text in texts.items()}


def _format(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    command = [str(ruff), "format", "--line-length", str(WIDTH), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def _rewrite(text: str, name: str, model: type[BaseModel]) -> str:
    """Return the text of a module with the constructor of a resource class as its model says."""
    method = _find_constructor(text, name)
    arguments = {argument.arg: argument for argument in method.args.kwonlyargs}
    added = [field for field in model.model_fields if field not in arguments and field not in INTERNAL]
    properties = next(
        node
        for node in ast.walk(method)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "drop_none"
    )
    lines = text.splitlines(keepends=True)
    last_keyword = properties.keywords[-1].lineno - 1
    lines[last_keyword:last_keyword] = [f"{field}={field},\n" for field in added]
    docstring = method.body[0]
    assert isinstance(docstring, ast.Expr)
    names = [name for name in (*arguments, *added) if name not in LAST]
    names += [name for name in LAST if name in arguments]
    lines[docstring.lineno - 1 : docstring.end_lineno] = [_document(names, model)]
    parameters = [f"{field}: {_type(model, field)} = None,\n" for field in added]
    last = arguments.get("adopt") or arguments["opts"]
    lines[last.lineno - 1 : last.lineno - 1] = parameters
    return "".join(lines)


def _find_constructor(text: str, name: str) -> ast.FunctionDef:
    resource = next(node for node in ast.parse(text).body if isinstance(node, ast.ClassDef) and node.name == name)
    return next(node for node in resource.body if isinstance(node, ast.FunctionDef) and node.name == "__init__")


def _document(fields: list[str], model: type[BaseModel]) -> str:
    texts: Mapping[str, str] = {**read_texts(model), "opts": OPTIONS}
    missing = [field for field in fields if not texts.get(field)]
    if missing:
        raise SystemExit(f"{model.__module__}.{model.__name__}: no text below {', '.join(missing)}")
    entries = [_wrap("resource_name", RESOURCE_NAME), *(_wrap(field, texts[field]) for field in fields)]
    return '        """Declare the resource.\n\n        Args:\n' + "".join(entries) + '        """\n'


def _wrap(name: str, text: str) -> str:
    lines = textwrap.wrap(
        f"{name}: {text}",
        WIDTH,
        initial_indent=" " * 12,
        subsequent_indent=" " * 16,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines) + "\n"


def _type(model: type[BaseModel], field: str) -> str:
    return f"pulumi.Input[{_plain_type(model.model_fields[field].annotation)}] | None"


def _plain_type(annotation: Any) -> str:
    """Return the type of plain values of an annotation."""
    if hasattr(annotation, "__metadata__"):
        return _plain_type(get_args(annotation)[0])
    if annotation in (bool, int, str):
        return annotation.__name__
    origin, arguments = get_origin(annotation), [part for part in get_args(annotation) if part is not NoneType]
    if origin in (list, tuple):
        return f"Sequence[{_plain_type(arguments[0])}]"
    if origin is dict or (inspect.isclass(annotation) and issubclass(annotation, BaseModel)):
        return "Mapping[str, Any]"
    kinds = {_plain_type(part) if not isinstance(part, str | int) else type(part).__name__ for part in arguments}
    return kinds.pop() if len(kinds) == 1 else "Any"


if __name__ == "__main__":
    main()
