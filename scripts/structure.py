"""Measure the structure of the four packages: `python scripts/structure.py`, a part of `make check`.

It counts, from the imports in the source:

- folder levels: the longest chain of folders of one package that import each other;
- file levels: the longest chain of files of one folder that import each other;
- circles of folders and circles of files;
- files in a folder, `__init__.py` left out, and lines of a file.

Imports inside functions and under `TYPE_CHECKING` count as well. At the root of a package, `__init__.py` (the names
that users import) and `errors.py` (the root of its exceptions) belong to no folder: the first imports from any folder,
and any folder imports the second. Exit status 1 for a circle; the other measures are reported, not limited: a subject
decides what is in a folder.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    ROOT / "components" / "lakewright",
    ROOT / "engine" / "lakewright_engine",
    ROOT / "spark" / "lakewright_spark",
    ROOT / "sandbox" / "lakewright_sandbox",
)

SHARED_FILES = ("__init__.py", "errors.py")
"""Files at the root of a package that belong to none of its folders. Circles of files include them."""

Node = TypeVar("Node", bound=Hashable)
Graph = Mapping[Node, set[Node]]


@dataclass(frozen=True)
class Folder:
    """Measures of one folder of a package."""

    path: Path
    files: int
    levels: int


@dataclass(frozen=True)
class Package:
    """Measures of one package."""

    path: Path
    files: dict[Path, int]
    """Lines by file."""
    folders: list[Folder]
    folder_levels: int
    folder_circles: list[list[Path]]
    file_circles: list[list[Path]]

    def problems(self) -> Iterable[str]:
        """Yield one sentence for each circle of imports."""
        name = self.path.name
        for circle in self.folder_circles:
            yield f"{name}: folders import each other in a circle: {_join_paths(circle)}"
        for circle in self.file_circles:
            yield f"{name}: files import each other in a circle: {_join_paths(circle)}"


def measure(package: Path) -> Package:
    """Return the measures of the package in a folder."""
    sources = {path: path.read_text("utf-8") for path in sorted(package.rglob("*.py"))}
    imports = file_imports(package, sources)
    folders = {path.parent for path in sources}
    by_folder: dict[Path, set[Path]] = {folder: set() for folder in folders}
    shared = {package / name for name in SHARED_FILES}
    for path in imports.keys() - shared:
        by_folder[path.parent] |= {target.parent for target in imports[path] - shared} - {path.parent}
    measured: list[Folder] = []
    for folder in sorted(folders):
        inside = {path for path in sources if path.parent == folder}
        within = {path: imports[path] & inside - shared for path in inside - shared}
        files = sum(path.name != "__init__.py" for path in inside)
        measured.append(Folder(folder, files, levels(within)))
    return Package(
        path=package,
        files={path: text.count("\n") for path, text in sources.items()},
        folders=measured,
        folder_levels=levels(by_folder),
        folder_circles=circles(by_folder),
        file_circles=circles(imports),
    )


def file_imports(package: Path, sources: Mapping[Path, str]) -> dict[Path, set[Path]]:
    """Return for each file of a package the files of it that it imports."""
    modules = {_module(package, path): path for path in sources}
    imports: dict[Path, set[Path]] = {}
    for path, text in sources.items():
        names: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = _base(_module(package, path), path, node)
                for alias in node.names:
                    submodule = f"{base}.{alias.name}"
                    names.add(submodule if submodule in modules else base)
        imports[path] = {modules[name] for name in names if name in modules} - {path}
    return imports


def levels(graph: Graph[Node]) -> int:
    """Return the number of nodes on the longest path; a circle counts as one node."""
    groups = _components(graph)
    group_of = {node: number for number, group in enumerate(groups) for node in group}
    depth: dict[int, int] = {}
    for number, group in enumerate(groups):  # targets come before their sources
        below = {group_of[target] for node in group for target in graph[node]} - {number}
        depth[number] = 1 + max((depth[other] for other in below), default=0)
    return max(depth.values(), default=0)


def circles(graph: Graph[Node]) -> list[list[Node]]:
    """Return the groups of nodes that reach each other."""
    return [group for group in _components(graph) if len(group) > 1]


def _components(graph: Graph[Node]) -> list[list[Node]]:
    """Return the strongly connected components, targets first (Tarjan's algorithm)."""
    index: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    stack: list[Node] = []
    components: list[list[Node]] = []

    def visit(node: Node) -> None:
        index[node] = lowest[node] = len(index)
        stack.append(node)
        for target in graph[node]:
            if target not in index:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], index[target])
        if lowest[node] == index[node]:
            start = stack.index(node)
            components.append(stack[start:])
            del stack[start:]

    for node in graph:
        if node not in index:
            visit(node)
    return components


def _module(package: Path, path: Path) -> str:
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _base(module: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    parts = parts[: len(parts) - (node.level - 1)]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _join_paths(paths: Iterable[Path]) -> str:
    return ", ".join(str(path.relative_to(ROOT)) for path in paths)


def main() -> int:
    """Print the measures of every package and its circles of imports."""
    packages = [measure(path) for path in PACKAGES]
    print(f"{'package or folder':60} {'files':>5} {'levels':>6} {'longest file, in lines':>22}")
    for package in packages:
        longest = max(package.files.values())
        print(f"{package.path.name:60} {len(package.files):5} {package.folder_levels:6} {longest:22}")
        for folder in package.folders:
            name = str(folder.path.relative_to(package.path.parent))
            longest = max(lines for file, lines in package.files.items() if file.parent == folder.path)
            print(f"  {name:58} {folder.files:5} {folder.levels:6} {longest:22}")
    problems = [problem for package in packages for problem in package.problems()]
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
