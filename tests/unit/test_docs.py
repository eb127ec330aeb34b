"""Tables of the documentation are complete, its links lead somewhere, and its Python code imports what exists."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from lakewright.cli.errors import UsageError
from lakewright.fleet.results import INTERRUPTED_EXIT
from lakewright_engine.model.errors import EngineError
from lakewright_engine.operation import UNEXPECTED_CHANGES
from lakewright_spark.errors import LakewrightSparkError

REPOSITORY = Path(__file__).parents[2]
PAGES = sorted((REPOSITORY / "docs").glob("[!a]*/*.md"))
"""All pages but decisions (`docs/adr`) and pages of resources."""
PACKAGES = ("components/lakewright", "engine/lakewright_engine", "spark/lakewright_spark", "sandbox/lakewright_sandbox")
READ = r"(?:environ|environment|getenv)(?:\.get)?[\[(]\"([A-Z][A-Z0-9_]+)\""
WSGI = {"CONTENT_LENGTH", "CONTENT_TYPE", "QUERY_STRING", "RAW_URI", "REMOTE_ADDR", "REQUEST_METHOD"}
"""Keys of a request in moto's application; they are not environment variables."""
SANDBOX_EXIT_CODES = {3}
"""`typer.Exit` of the sandbox's commands."""


def page(name: str) -> str:
    return (REPOSITORY / "docs" / name).read_text(encoding="utf-8")


def sources() -> list[str]:
    return [file.read_text("utf-8") for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py")]


def codes(error: type[Exception]) -> set[int]:
    """Return the exit codes of an exception and of its subclasses."""
    own_codes = {code} if isinstance(code := getattr(error, "exit_code", None), int) else set[int]()
    return own_codes.union(*(codes(below) for below in error.__subclasses__()))


def read_documented_codes(text: str) -> set[int]:
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


def test_every_environment_variable_is_documented() -> None:
    used = {name for source in sources() for name in re.findall(r"\bLAKEWRIGHT_[A-Z_]+\b", source)}
    documented = set(re.findall(r"`(LAKEWRIGHT_[A-Z_]+)`", page("reference/environment-variables.md")))
    # References to secrets in examples are named by the user, not read by the product.
    assert used - {"LAKEWRIGHT_CLIENT_SECRET"} == documented


def test_variables_of_other_tools_are_documented() -> None:
    _, _, text = page("reference/environment-variables.md").partition("## Variables of other tools")
    documented = set(re.findall(r"`([A-Z][A-Z0-9_]+)`", text.partition("\n## ")[0]))
    every = "\n".join(sources())
    read = {name for name in re.findall(READ, every) if not name.startswith(("LAKEWRIGHT_", "MOTO_", "S3_IGNORE_"))}
    assert read - WSGI <= documented
    assert {name for name in documented if f'"{name}"' not in every} == set()


def test_every_exit_code_is_documented() -> None:
    first, _, second = page("reference/exit-codes.md").partition("## `lakewright-spark`")
    lakewright = codes(EngineError) | codes(UsageError) | {UNEXPECTED_CHANGES, INTERRUPTED_EXIT} | SANDBOX_EXIT_CODES
    assert read_documented_codes(first) == lakewright
    assert read_documented_codes(second) == codes(LakewrightSparkError) | {2}


def test_files_outside_git_are_ignored() -> None:
    ignored = (REPOSITORY / ".gitignore").read_text().split()
    rows = re.findall(r"^\| (.+?) \|.*\| no \|$", page("reference/files.md"), re.MULTILINE)
    folders = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert folders
    assert [name for name in folders if not any(name.startswith(entry) for entry in ignored)] == []


def test_tables_in_ops_are_documented() -> None:
    from lakewright_spark.policies.builtin import OWN_POLICIES

    _, _, text = page("reference/files.md").partition("namespace `ops`")
    assert set(re.findall(r"^\| `([a-z_]+)` \|", text, re.MULTILINE)) == set(OWN_POLICIES)


@pytest.mark.parametrize("file", PAGES, ids=lambda file: file.name)
def test_every_page_has_one_question_as_title(file: Path) -> None:
    text = re.sub(r"```.*?```", "", file.read_text("utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^# (.+)$", text, re.MULTILINE)
    assert len(titles) == 1
    assert titles[0].endswith("?")


@pytest.mark.parametrize(
    "file",
    [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").glob("[!.]*/**/*.md"))],
    ids=lambda file: str(file.relative_to(REPOSITORY)),
)
def test_links_lead_to_files(file: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", file.read_text("utf-8"))  # patterns in code may look like links
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (file.parent / link).exists()] == []


def test_python_code_imports_names_that_exist() -> None:
    files = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("[!.]*/**/*.md")]
    blocks = [
        block
        for file in files
        for block in re.findall(r"^```python.*?\n(.*?)^```", file.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    ]
    imports = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom)]
    names = [(node.module or "", alias.name) for node in imports for alias in node.names]
    assert ("lakewright_spark", "ResultWriter") in names
    assert [(module, name) for module, name in names if not hasattr(import_module(module), name)] == []
