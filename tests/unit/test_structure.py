"""`scripts/structure.py` measures levels, circles and sizes of a package."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def structure(load_script: Callable[[str], ModuleType]) -> ModuleType:
    return load_script("structure")


@pytest.fixture
def package(tmp_path: Path, structure: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(structure, "ROOT", tmp_path)
    return tmp_path / "shop"


def write(package: Path, **sources: str) -> None:
    """Write modules; `__` in a name stands for a folder, and every folder gets an `__init__.py`."""
    for name, source in sources.items():
        path = package / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(source)
    (package / "__init__.py").touch()


def test_a_chain_of_files_has_one_level_a_file(structure: ModuleType, package: Path) -> None:
    write(package, a="from . import b", b="import shop.c", c="from shop.d import x", d="x = 1")

    measured = structure.measure(package)

    assert [folder.levels for folder in measured.folders] == [4]
    assert list(measured.problems()) == []


def test_a_lazy_import_closes_a_circle(structure: ModuleType, package: Path) -> None:
    write(package, a="from .b import x", b="def f():\n    from shop.a import y")

    assert list(structure.measure(package).problems()) == [
        "shop: files import each other in a circle: shop/a.py, shop/b.py"
    ]


def test_folders_import_each_other_in_a_circle(structure: ModuleType, package: Path) -> None:
    write(package, orders__a="from ..stock import c", orders__b="x = 1", stock__c="from ..orders.b import x")

    (problem,) = structure.measure(package).problems()

    assert problem.startswith("shop: folders import each other in a circle: ")
    assert "shop/orders" in problem
    assert "shop/stock" in problem


def test_large_folders_and_files_are_no_problem(structure: ModuleType, package: Path) -> None:
    write(package, **{f"m{number}": "x = 1" for number in range(20)}, long="x = 1\n" * 600)

    measured = structure.measure(package)

    assert list(measured.problems()) == []
    assert [folder.files for folder in measured.folders] == [21]
    assert max(measured.files.values()) == 600


def test_errors_and_exports_of_a_package_are_in_no_folder(structure: ModuleType, package: Path) -> None:
    write(package, errors="class ShopError(Exception): ...", start="from .orders import a")
    write(package, orders__a="from ..errors import ShopError")
    (package / "__init__.py").write_text("from shop.orders.a import ShopError")

    measured = structure.measure(package)

    assert list(measured.problems()) == []
    assert measured.folder_levels == 2
    assert [folder.levels for folder in measured.folders] == [1, 1]


def test_circles_of_files_include_the_errors_of_a_package(structure: ModuleType, package: Path) -> None:
    write(package, errors="from shop.orders.a import x", orders__a="from ..errors import ShopError")

    assert list(structure.measure(package).problems()) == [
        "shop: files import each other in a circle: shop/errors.py, shop/orders/a.py"
    ]
