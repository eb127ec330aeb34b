"""The reference documentation is up to date and complete, and its examples are valid."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import create_model

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.py"))
DECLARED = """
import json, runpy, sys
import pulumi
from importlib import import_module
from lakewright import lakekeeper

class Declared(pulumi.runtime.Mocks):
    def new_resource(self, args):
        declared.append((args.typ, args.inputs))
        return "01a1fcf2-b7e7-781a-879e-a45e6cb252fb", args.inputs
    def call(self, args):
        return {}

declared = []
pulumi.runtime.set_mocks(Declared())
for example in sys.argv[1:]:
    pulumi.runtime.test(lambda: runpy.run_path(example))()
    for kind, inputs in declared:
        name = kind.rpartition(":")[2]
        module = import_module(getattr(lakekeeper, name).__module__)
        wanted = {key: value for key, value in inputs.items() if value is not None and key != "__provider"}
        failures = getattr(module, f"{name}Provider")().check({}, wanted).failures
        print(json.dumps([example, name, [f"{one.property}: {one.reason}" for one in failures]]))
    declared.clear()
"""


@pytest.fixture(scope="module")
def reference(load_script: Callable[[str], ModuleType]) -> Any:
    return load_script("reference")


def test_reference_is_up_to_date(reference: Any) -> None:
    committed_pages = {page.name: page.read_text() for page in (ROOT / "docs" / "reference" / "resources").glob("*.md")}
    assert committed_pages == reference.pages(), "run `make docs`"


def test_pages_of_fields_are_up_to_date(load_script: Callable[[str], ModuleType]) -> None:
    pages: dict[str, str] = load_script("field_pages").build_pages()
    committed_pages = {name: (ROOT / "docs" / "reference" / name).read_text("utf-8") for name in pages}
    assert committed_pages == pages, "run `make docs`"


def test_page_of_commands_is_up_to_date(load_script: Callable[[str], ModuleType]) -> None:
    command_page = load_script("command_page")
    assert command_page.PAGE.read_text("utf-8") == command_page.build_page(), "run `make docs`"


def test_signatures_follow_from_the_models(
    load_script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    texts: dict[Path, str] = load_script("signatures").write_signatures()

    assert [str(path) for path, text in texts.items() if path.read_text("utf-8") != text] == [], "run `make docs`"
    assert len(texts) >= 10


def test_new_property_gets_an_argument_with_its_text(
    load_script: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    signatures = load_script("signatures")
    monkeypatch.setattr(signatures, "read_texts", lambda _model: {"server": "The server.", "size": "Size in bytes."})
    text = textwrap.dedent('''
        class Box(Resource):
            def __init__(
                self,
                resource_name: str,
                *,
                server: str,
                opts: None = None,
            ) -> None:
                """Declare the resource."""
                props = drop_none(
                    server=server,
                )
    ''')

    written = signatures._rewrite(text, "Box", create_model("BoxArgs", server=(str, ...), size=(int | None, None)))

    assert "size: pulumi.Input[int] | None = None,\n        opts" in written
    assert "            size: Size in bytes.\n" in written
    assert "size=size,\nserver=server" in written.replace(" ", "")


def test_every_resource_has_a_page(reference: Any) -> None:
    from lakewright import lakekeeper

    assert set(reference.RESOURCES) == {name for name in lakekeeper.__all__ if name[0].isupper()}


def test_every_property_is_explained(reference: Any) -> None:
    pages = [reference._page(name) for name in reference.RESOURCES]
    assert [
        f"{page.name}: {group.title}.{prop.name}"
        for page in pages
        for group in page.groups
        for prop in group.properties
        if not prop.text
    ] == []


@pytest.mark.long
def test_examples_are_valid_declarations() -> None:
    examples = [str(example) for example in EXAMPLES]
    done = subprocess.run(
        [sys.executable, "-c", DECLARED, *examples], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    checked = [json.loads(line) for line in done.stdout.splitlines()]
    assert {example for example, _, _ in checked} == set(examples)
    assert [item for item in checked if item[2]] == []
