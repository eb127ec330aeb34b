"""The permission matrix: the page has what the documents allow, and every part of them matters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from types import ModuleType
from typing import Any

import pytest

Documents = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def permissions(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("permissions")


def remove_each_statement(documents: Documents) -> Iterator[tuple[str, Documents]]:
    for name, document in documents.items():
        for index, statement in enumerate(document["Statement"]):
            fewer = deepcopy(documents)
            del fewer[name]["Statement"][index]
            yield f"{name}: {statement['Sid']}", fewer


def remove_each_action(documents: Documents) -> Iterator[tuple[str, Documents]]:
    for name, document in documents.items():
        for index, statement in enumerate(document["Statement"]):
            actions = statement["Action"]
            for action in actions if isinstance(actions, list) and len(actions) > 1 else []:
                fewer = deepcopy(documents)
                fewer[name]["Statement"][index]["Action"] = [other for other in actions if other != action]
                yield f"{name}: {statement['Sid']}: {action}", fewer


def remove_each_condition(documents: Documents) -> Iterator[tuple[str, Documents]]:
    for name, document in documents.items():
        for index, statement in enumerate(document["Statement"]):
            for operator, keys in statement.get("Condition", {}).items():
                for key in keys:
                    fewer = deepcopy(documents)
                    del fewer[name]["Statement"][index]["Condition"][operator][key]
                    yield f"{name}: {statement['Sid']}: {operator} {key}", fewer


def test_page_is_up_to_date(permissions: ModuleType) -> None:
    """`make docs` writes it."""
    assert permissions.PAGE.read_text(encoding="utf-8") == permissions.page()


@pytest.mark.parametrize("remove", [remove_each_statement, remove_each_action, remove_each_condition])
def test_every_part_of_a_document_matters(
    remove: Callable[[Documents], Iterator[tuple[str, Documents]]], permissions: ModuleType
) -> None:
    """The matrix changes if any statement, action or condition is removed."""
    documents = permissions.documents()
    complete = permissions.matrix(documents)

    changed = {label: permissions.matrix(fewer) != complete for label, fewer in remove(documents)}

    assert changed
    assert [label for label, is_changed in changed.items() if not is_changed] == []
