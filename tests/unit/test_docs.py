"""Tables of the documentation are complete."""

from __future__ import annotations

import re
from pathlib import Path

from lakewright.cli.errors import UsageError
from lakewright_engine.model.errors import EngineError
from lakewright_spark.errors import LakewrightSparkError

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ("components/lakewright", "engine/lakewright_engine", "spark/lakewright_spark", "sandbox/lakewright_sandbox")


def page(name: str) -> str:
    return (REPOSITORY / "docs" / name).read_text(encoding="utf-8")


def codes(of: type[Exception]) -> set[int]:
    """Return the exit codes of an exception and of those below it."""
    own = {code} if isinstance(code := getattr(of, "exit_code", None), int) else set[int]()
    return own.union(*(codes(below) for below in of.__subclasses__()))


def test_every_environment_variable_is_documented() -> None:
    sources = [file for package in PACKAGES for file in (REPOSITORY / package).rglob("*.py")]
    used = {name for file in sources for name in re.findall(r"\bLAKEWRIGHT_[A-Z_]+\b", file.read_text("utf-8"))}
    documented = set(re.findall(r"`(LAKEWRIGHT_[A-Z_]+)`", page("environment-variables.md")))
    # References to secrets in examples are named by the user, not read by the product.
    assert used - {"LAKEWRIGHT_CLIENT_SECRET"} == documented


def test_every_exit_code_is_documented() -> None:
    first, _, second = page("exit-codes.md").partition("## `lakewright-spark`")
    for text, errors in ((first, (EngineError, UsageError)), (second, (LakewrightSparkError,))):
        documented = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
        assert set().union(*map(codes, errors)) <= documented
