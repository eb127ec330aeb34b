"""Compare AWS inputs with the installed pulumi_aws: `python scripts/aws_inputs.py`.

It reads each call of a class of pulumi_aws in the packages' source, and reports inputs that the class does not have,
required inputs that are absent, and unknown or absent keys of mappings written in place, at any depth. The schema is
that of the SDK's generated types, which are read as source: importing them takes seconds. Exit status 1 for a finding.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "components" / "lakewright", ROOT / "infra")
OPTIONS = {"self", "__self__", "resource_name", "opts"}


def find_sdk() -> Path:
    """Return the folder of the installed pulumi_aws."""
    spec = importlib.util.find_spec("pulumi_aws")
    if spec is None or spec.origin is None:
        raise SystemExit("pulumi_aws is not installed: run `make setup`")
    return Path(spec.origin).parent


@cache
def read_classes(file: Path) -> dict[str, ast.ClassDef]:
    """Return the classes of a file of the SDK by name."""
    tree = ast.parse(file.read_text())
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}


def find_class(sdk: Path, module: str, name: str) -> ast.ClassDef | None:
    """Return a resource's or argument's class of a module of the SDK, such as `s3`; None if it has none."""
    folder = sdk / module
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    for file in (folder / f"{snake}.py", folder / "_inputs.py"):
        if file.exists() and name in read_classes(file):
            return read_classes(file)[name]
    return None


def find_arguments(sdk: Path, module: str, name: str) -> ast.ClassDef | None:
    """Return the class of a resource's arguments, which says which of them are required; None if it has none."""
    file = sdk / module / f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}.py"
    classes = read_classes(file) if file.exists() else {}
    return classes.get(f"{name}InitArgs") or classes.get(f"{name}Args")


def read_inputs(model: ast.ClassDef) -> dict[str, tuple[str, bool]]:
    """Return the inputs of a class, each with its type as source and whether it is required."""
    if model.name.endswith("Dict"):
        return {
            node.target.id: (ast.unparse(node.annotation), "NotRequired" not in ast.unparse(node.annotation))
            for node in model.body
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
        }
    functions = [node for node in model.body if isinstance(node, ast.FunctionDef)]
    internal = [node for node in functions if node.name == "_internal_init"]
    init = (internal or [node for node in functions if node.name == "__init__"])[-1].args
    defaults = [None] * (len(init.args) - len(init.defaults)) + list(init.defaults)
    inputs = [*zip(init.args, defaults, strict=True), *zip(init.kwonlyargs, init.kw_defaults, strict=True)]
    return {
        name.arg: (ast.unparse(name.annotation) if name.annotation else "", default is None)
        for name, default in inputs
        if name.arg not in OPTIONS
    }


def compare_inputs(sdk: Path, module: str, model: ast.ClassDef, values: dict[str, ast.expr], source: str) -> list[str]:
    """Return the differences between written inputs and a class."""
    inputs = read_inputs(model)
    problems = [f"{source}: {model.name} has no input `{name}`" for name in values if name not in inputs]
    absent = [name for name, (_, required) in inputs.items() if required and name not in values]
    problems += [f"{source}: {model.name} needs the input `{name}`" for name in absent]
    for name, value in values.items():
        nested = re.search(r"(\w+Args)(Dict)?\b", inputs.get(name, ("", False))[0])
        nested_model = find_class(sdk, module, f"{nested.group(1)}Dict") if nested else None
        for mapping in value.elts if isinstance(value, ast.List) else [value]:
            if nested_model and isinstance(mapping, ast.Dict):
                keys = {
                    key.value: item
                    for key, item in zip(mapping.keys, mapping.values, strict=True)
                    if isinstance(key, ast.Constant) and isinstance(key.value, str)
                }
                problems += compare_inputs(sdk, module, nested_model, keys, f"{source}, `{name}`")
    return problems


def check_file(sdk: Path, file: Path) -> tuple[int, list[str]]:
    """Return how many calls of the SDK a file has, and their problems."""
    text = file.read_text()
    if "pulumi_aws" not in text:
        return 0, []
    tree = ast.parse(text)
    modules = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "pulumi_aws"
        for alias in node.names
    }
    roots = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name == "pulumi_aws"
    }
    calls, problems = 0, list[str]()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        parts = ast.unparse(node.func).split(".")
        module = modules.get(parts[0], "" if parts[0] in roots else None)
        if module is None or not parts[-1][:1].isupper() or len(parts) > 3:
            continue
        module = "/".join([module, *parts[1:-1]]).strip("/")
        source = f"{file}:{node.lineno}"
        resource = find_class(sdk, module, parts[-1])
        model = find_arguments(sdk, module, parts[-1]) or resource
        calls += 1
        if model is None:
            problems.append(f"{source}: pulumi_aws has no class `{'.'.join(parts)}`")
        elif all(keyword.arg for keyword in node.keywords):
            values = {str(keyword.arg): keyword.value for keyword in node.keywords if keyword.arg not in OPTIONS}
            problems += compare_inputs(sdk, module, model, values, source)
    return calls, problems


def main(sources: list[Path]) -> int:
    """Check each Python file of some folders; return the exit status."""
    sdk = find_sdk()
    results = [
        check_file(sdk, file)
        for source in sources
        for file in sorted(source.rglob("*.py"))
        if ".venv" not in file.parts
    ]
    problems = [problem for _, lines in results for problem in lines]
    print(*problems, f"{sum(calls for calls, _ in results)} AWS calls, {len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main([Path(path) for path in sys.argv[1:]] or list(SOURCES)))
