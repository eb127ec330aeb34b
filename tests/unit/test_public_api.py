"""The names that users import from `lakewright` and `lakewright_spark`, and the examples of the packages."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

PACKAGES = ("lakewright", "lakewright_engine", "lakewright_sandbox", "lakewright_spark")
LAZY = ("lakewright", "lakewright_spark")
USERS_FILE = """# pyright: strict
from datetime import datetime
from typing import assert_type

from lakewright import LakewrightError, Tenant, TenantSpec, declare_platform, declare_tenant, parse_spec
from lakewright_spark import (
    CatalogConfig,
    Execution,
    LakewrightSparkError,
    Port,
    ResultReader,
    ResultUri,
    ResultWriter,
    current,
    load_config,
    spark_session,
)


def declare(tenant: Tenant) -> list[str]:
    declare_tenant()
    declare_platform()
    return tenant.computing_units


def write_rows(now: datetime) -> ResultWriter:
    try:
        assert_type(parse_spec({}, "acme.yaml"), TenantSpec)
    except LakewrightError as error:
        assert_type(error.exit_code, int)
    try:
        config = assert_type(load_config("catalog.json"), CatalogConfig)
    except LakewrightSparkError:
        raise
    uri = assert_type(Execution(7, 42).result(Port("Clean-1")), ResultUri)
    frame = spark_session(config, "rows", deadline=now).table("raw.flights")
    current().write("Clean-1", frame)
    return ResultWriter(config, ResultReader(config).find_warehouse(uri))
"""


@pytest.mark.parametrize("package", LAZY)
def test_importing_a_package_loads_nothing_else(package: str) -> None:
    """No module is loaded, neither heavy ones such as Pulumi, PySpark and pydantic, nor those of Python."""
    code = f"import sys; before = {{*sys.modules}}; import {package}; print(*sorted({{*sys.modules}} - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [package]


@pytest.mark.parametrize("package", LAZY)
def test_every_export_can_be_imported(package: str) -> None:
    module = import_module(package)
    assert [getattr(module, name).__name__ for name in module.__all__] == module.__all__
    assert {*module.__all__} <= {*dir(module)}


@pytest.mark.parametrize("package", LAZY)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Namespace'"):
        _ = import_module(package).Namespace


def test_exports_are_typed_in_a_users_file(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(USERS_FILE + "\nfrom lakewright import Namespace  # the mistake\n")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    problems = [problem["message"] for problem in json.loads(done.stdout)["generalDiagnostics"]]
    assert problems[0].startswith('"Namespace" is unknown import symbol')
    assert all("Namespace" in problem for problem in problems)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_example_of_a_package_runs(package: str) -> None:
    result = doctest.testmod(import_module(package), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0
