"""Compare AWS inputs with the installed pulumi_aws: `python scripts/aws_inputs.py`.

It reads each call of a class of pulumi_aws in the packages' source, and reports inputs that the class does not have,
required inputs that are absent, and unknown or absent keys of mappings, at any depth. A mapping is written in place,
or made by a function of `MADE_VALUES`, which is called; an input that cannot be read is a finding, too. The schema is
that of the SDK's generated types, which are read as source: importing them takes seconds. Exit status 1 for a finding.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from lakewright.aws.private_bucket import encryption_rules
from lakewright.storage.lifecycle import PrefixLifecycle, lifecycle_rules

ROOT = Path(__file__).resolve().parent.parent
SOURCES = (ROOT / "components" / "lakewright", ROOT / "infra")
OPTIONS = {"self", "__self__", "resource_name", "opts"}
_ALL_RULES = PrefixLifecycle(abort_incomplete_uploads_days=1, noncurrent_version_days=1, intelligent_tiering_days=1)
MADE_VALUES: Mapping[str, list[object]] = {
    "encryption_rules": [encryption_rules(None), encryption_rules("arn:aws:kms:us-east-1:123456789012:key/1")],
    "lifecycle_rules": [lifecycle_rules(1, 1, {}), lifecycle_rules(1, 1, {"acme/one": _ALL_RULES, "acme/two": None})],
}
"""Values of inputs by the function that makes them, with each field that it can set."""


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


def compare_inputs(
    sdk: Path, module: str, model: ast.ClassDef, values: dict[str, ast.expr], *, source: str, program: ast.Module
) -> list[str]:
    """Return the differences between written inputs and a class. `program` has the assignments of variables."""
    inputs = read_inputs(model)
    problems = [f"{source}: {model.name} has no input `{name}`" for name in values if name not in inputs]
    absent = [name for name, (_, required) in inputs.items() if required and name not in values]
    problems += [f"{source}: {model.name} needs the input `{name}`" for name in absent]
    for name, value in values.items():
        annotation = inputs.get(name, ("", False))[0]
        nested = re.search(r"(\w+Args)(Dict)?\b", annotation)
        nested_model = find_class(sdk, module, f"{nested.group(1)}Dict") if nested else None
        if nested_model is None:
            continue
        mappings = read_mappings(value, program)
        if mappings is None and "_builtins.str" not in annotation:
            problems.append(
                f"{source}: the input `{name}` of {model.name} cannot be read: write it in place, or add the"
            )
            problems[-1] += " function that makes it to MADE_VALUES"
        for mapping in mappings or []:
            keys = {
                key.value: item
                for key, item in zip(mapping.keys, mapping.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            }
            problems += compare_inputs(sdk, module, nested_model, keys, source=f"{source}, `{name}`", program=program)
    return problems


def read_mappings(value: ast.expr, program: ast.Module) -> list[ast.Dict] | None:
    """Return the mappings of an input, which may be in a list; None if they cannot be read.

    An instance of a class of the SDK has no mapping: it is a call of its own.
    """
    if isinstance(value, ast.Dict):
        return [value]
    if isinstance(value, ast.Constant) and value.value is None:
        return []
    parts: list[ast.expr] | None = None
    if isinstance(value, ast.List):
        parts = value.elts
    elif isinstance(value, ast.IfExp):
        parts = [value.body, value.orelse]
    elif isinstance(value, ast.Name):
        parts = find_assigned_values(value.id, program)
    elif isinstance(value, ast.Call):
        if ast.unparse(value.func).endswith("Args"):
            return []
        called = {ast.unparse(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
        results = [result for name in sorted(called & MADE_VALUES.keys()) for result in MADE_VALUES[name]]
        parts = [ast.parse(repr(result), mode="eval").body for result in results]
    if not parts and not isinstance(value, ast.List):
        return None
    all_mappings: list[ast.Dict] = []
    for part in parts or []:
        mappings = read_mappings(part, program)
        if mappings is None:
            return None
        all_mappings += mappings
    return all_mappings


def find_assigned_values(name: str, program: ast.Module) -> list[ast.expr]:
    """Return the values that a program assigns to a variable."""
    values: list[ast.expr] = []
    for node in ast.walk(program):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            assigned = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            values += [assigned] if assigned else []
    return values


def check_function(sdk: Path, call: ast.Call, name: str, source: str) -> list[str]:
    """Return the inputs of a call that a function of the SDK, such as `get_caller_identity`, does not have."""
    file = sdk / f"{name.removesuffix('_output')}.py"
    functions = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)]
    arguments = {argument.arg for node in functions if node.name == name for argument in node.args.args}
    unknown = [keyword.arg for keyword in call.keywords if keyword.arg not in arguments]
    return [f"{source}: {name} has no input `{keyword}`" for keyword in unknown]


def find_hidden_imports(tree: ast.Module, file: Path) -> list[str]:
    """Return the imports of parts of pulumi_aws whose calls would not be read."""
    return [
        f"{file}:{node.lineno}: calls of `{ast.unparse(node)}` are not read: write `from pulumi_aws import MODULE`"
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pulumi_aws."))
        or (isinstance(node, ast.Import) and any(alias.name.startswith("pulumi_aws.") for alias in node.names))
    ]


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
    calls, problems = 0, find_hidden_imports(tree, file)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in modules:
            calls += 1
            problems += check_function(sdk, node, modules[node.func.id], f"{file}:{node.lineno}")
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
        elif not all(keyword.arg for keyword in node.keywords):
            problems.append(f"{source}: inputs of {model.name} behind `**` cannot be read: name each of them")
        else:
            values = {str(keyword.arg): keyword.value for keyword in node.keywords if keyword.arg not in OPTIONS}
            problems += compare_inputs(sdk, module, model, values, source=source, program=tree)
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
    calls = sum(calls for calls, _ in results)
    print(*problems, f"{calls} AWS calls, {len(problems)} problems", sep="\n")
    if not calls:
        print(f"no call of pulumi_aws was found in {', '.join(map(str, sources))}: name folders of programs")
    return 1 if problems or not calls else 0


if __name__ == "__main__":
    raise SystemExit(main([Path(path) for path in sys.argv[1:]] or list(SOURCES)))
