"""The keys of what `--json` prints: snake case in every command of both programs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.tenant_project import REPOSITORY

SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
SENT_TO_OTHERS = {
    "components/lakewright/aws/role_request_formats.py": "a policy of IAM",
    "components/lakewright/cli/engines/pulumi_plans.py": "a plan file",
    "engine/lakewright_engine/state": "Pulumi's state",
    "engine/lakewright_engine/storage": "Pulumi's lock",
}
"""Files that write JSON in the form of another system."""


def find_json_functions(file: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions that return or print JSON."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef) and (node.name.endswith("to_json") or _prints_json(node)):
            yield node


def _prints_json(function: ast.FunctionDef) -> bool:
    calls = [ast.unparse(node) for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(call.startswith(("print(json.dumps(", "_print_json(")) for call in calls)


def find_keys(function: ast.FunctionDef) -> Iterator[str]:
    """Yield the literal keys of the mappings in a function."""
    for node in ast.walk(function):
        names = node.keys if isinstance(node, ast.Dict) else []
        names += [node.slice] if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) else []
        yield from (name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str))


def test_json_keys_in_the_sources_are_snake_case() -> None:
    keys_by_function: dict[str, set[str]] = {}
    for folder in ("components/lakewright", "engine/lakewright_engine", "spark/lakewright_spark"):
        for file in (REPOSITORY / folder).rglob("*.py"):
            path = str(file.relative_to(REPOSITORY))
            if not path.startswith((*SENT_TO_OTHERS,)):
                for function in find_json_functions(file):
                    keys_by_function.setdefault(f"{path}: {function.name}", set()).update(find_keys(function))

    wrong = {
        function_name: [key for key in keys if not SNAKE_CASE.fullmatch(key)]
        for function_name, keys in keys_by_function.items()
    }
    assert len(keys_by_function) > 50
    assert {function_name: keys for function_name, keys in wrong.items() if keys} == {}
