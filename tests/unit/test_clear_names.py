"""`scripts/clear_names.py` finds functions that no verb names, variables that point, and class names used twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest


@pytest.fixture(scope="module")
def clear_names(load_script: Callable[[str], ModuleType]) -> Any:
    return load_script("clear_names")


@pytest.mark.parametrize("name", ["found", "_listed_tables", "of_warehouse", "storage_of", "until", "as_of"])
def test_functions_without_a_verb(clear_names: Any, name: str) -> None:
    hits = [*clear_names.find_unclear_names(f"def {name}():\n    pass\n")]
    assert [(hit.line, hit.name) for hit in hits] == [(1, name)]


@pytest.mark.parametrize("name", ["find_tables", "to_json", "with_mark", "embed", "open_client", "__init__"])
def test_functions_with_a_verb(clear_names: Any, name: str) -> None:
    assert [*clear_names.find_unclear_names(f"def {name}():\n    pass\n")] == []


@pytest.mark.parametrize(
    "decorator",
    ["property", "override", "functools.cached_property", "name.setter", "pytest.fixture", "pytest.fixture(scope='x')"],
)
def test_properties_overrides_and_fixtures_are_exempt(clear_names: Any, decorator: str) -> None:
    assert [*clear_names.find_unclear_names(f"@{decorator}\ndef recorded(self):\n    pass\n")] == []


def test_other_decorators_with_arguments_exempt_nothing(clear_names: Any) -> None:
    (hit,) = clear_names.find_unclear_names("@retry(times=2)\ndef found():\n    pass\n")
    assert hit.name == "found"


def test_hidden_folders_have_no_sources(clear_names: Any, tmp_path: Path) -> None:
    for path in ("infra/policy/rule.py", "infra/policy/.venv/package.py", "other/module.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("NAME = 1\n")
    assert clear_names.read_sources(tmp_path, ["infra"]) == {"infra/policy/rule.py": "NAME = 1\n"}


def test_pointing_variables_and_parameters(clear_names: Any) -> None:
    source = "def read(there, path):\n    found = there\n    for each in found:\n        yield each\n"
    hits = sorted(clear_names.find_unclear_names(source))
    assert [(hit.line, hit.name) for hit in hits] == [(1, "there"), (2, "found"), (3, "each")]


def test_allowed_names_are_counted(clear_names: Any) -> None:
    sources = {"a.py": "found = 1\nfound = 2\n"}
    assert [*clear_names.check_sources(sources, Counter({"a.py found": 2}))] == []
    (message,) = clear_names.check_sources(sources, Counter({"a.py found": 1}))
    assert message == "a.py:2: 'found': name the thing"
    (message,) = clear_names.check_sources(sources, Counter({"a.py found": 2, "a.py there": 1}))
    assert message == "allowed_names.txt: remove `a.py there`: there is no such name"


def test_a_class_name_is_used_once(clear_names: Any) -> None:
    sources = {"a.py": "class Auth:\n    class Kind: ...\n", "b.py": "class Other: ...\nclass Kind: ...\n"}
    (message,) = clear_names.find_repeated_classes(sources)
    assert message == "b.py:2: class 'Kind': a.py:2 has a class of this name; rename one of them"


def test_class_names_of_one_file_are_compared(clear_names: Any) -> None:
    (message,) = clear_names.find_repeated_classes({"a.py": "class Row: ...\nclass Row: ...\n"})
    assert message.startswith("a.py:2: class 'Row': a.py:1 has")
