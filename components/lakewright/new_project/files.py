"""The files of a new project, and how they are written."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from lakewright.environment.environment import Environment
from lakewright.new_project.requirements import CONSTRAINTS, build_constraints, build_requirements
from lakewright.new_project.settings import AuthenticationKind, CiSystem, Cloud, LakekeeperAccess, ProjectSettings
from lakewright.packaged_files import FOLDER

TEMPLATE = Path(__file__).parent / "template"
"""The project with the sandbox as its environment; a template of `pulumi new`."""
SCHEMAS = {"tenant": "tenants", "environment": "environments", "platform": "platform/stacks"}
"""JSON Schemas of a project, and the folder of the files that they check."""
_MOVED_PATHS = {"../../.venv": "../.venv", "../../../docs/schema/": "../../schema/"}
"""Relative paths in Lakewright's repository, where the folders of additions are a level deeper, and in a project."""
_PROGRAMS = {"Pulumi.yaml", "platform/Pulumi.yaml"}
_DESCRIPTION = "Apache Iceberg tenants on Lakekeeper, one stack each"
_BACKEND = "backend:\n  url: {url}\n"
_ENVIRONMENT_HEAD = """\
# yaml-language-server: $schema=../schema/environment.schema.json
# Addresses and identities that tenants share; secrets are references, such as env:NAME. Check: `lakewright doctor`.
"""


def build_files(settings: ProjectSettings) -> dict[str, str]:
    """Return the files of a project, by their path in its folder.

    Raises:
        SpecError: The settings of the environment are invalid.
    """
    files = {path: _fill_placeholders(text, settings.name) for path, text in _read_folder(TEMPLATE)}
    if settings.cloud is not Cloud.SANDBOX:
        files[f"environments/{settings.environment}.yaml"] = _build_environment(settings)
    if settings.cloud is not Cloud.SANDBOX or settings.environment != "sandbox":
        sandbox = files.pop("environments/sandbox.yaml")
        if settings.cloud is Cloud.SANDBOX:
            files[f"environments/{settings.environment}.yaml"] = sandbox
    files["requirements.txt"] = build_requirements(settings.extras)
    files[CONSTRAINTS] = build_constraints()
    files |= list_ci_files(settings.ci)
    for addition in settings.additions:
        files |= {f"{addition}/{path}": _move_paths(text) for path, text in _read_folder(FOLDER / addition)}
    # Tenants read the outputs of the platform's stack, so both projects have the same backend.
    for path in _PROGRAMS & files.keys():
        files[path] = _build_project_file(files[path], settings.backend)
    return files | list_schemas({Path(path).parent.as_posix() for path in files})


def list_schemas(folders: Collection[str]) -> dict[str, str]:
    """Return the JSON Schemas of a project by their path.

    Args:
        folders: Folders of the project; a schema is listed if its files' folder is among them.
    """
    return {
        f"schema/{name}.schema.json": (FOLDER / "schema" / f"{name}.schema.json").read_text(encoding="utf-8")
        for name, folder in SCHEMAS.items()
        if folder in folders
    }


def list_ci_files(system: CiSystem) -> dict[str, str]:
    """Return the files of a CI system by their path."""
    match system:
        case CiSystem.GITHUB:
            return {f".github/workflows/{path}": text for path, text in _read_folder(FOLDER / "ci" / "github")}
        case CiSystem.GITLAB:
            return dict(_read_folder(FOLDER / "ci" / "gitlab"))
        case CiSystem.NONE:
            return {}


def find_existing(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Return the paths of files that a folder has with another content."""
    return [path for path, text in files.items() if _has_other_content(folder / path, text)]


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write files below a folder, which is made if needed."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _has_other_content(file: Path, text: str) -> bool:
    if not file.exists() and not file.is_symlink():
        return False
    try:
        return file.read_text(encoding="utf-8") != text
    except (OSError, UnicodeDecodeError):
        return True


def _read_folder(folder: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        is_generated = {"__pycache__", ".venv"} & {*path.parts}
        if file.is_file() and not is_generated:
            yield path.as_posix(), file.read_text(encoding="utf-8")


def _move_paths(text: str) -> str:
    for path, moved in _MOVED_PATHS.items():
        text = text.replace(path, moved)
    return text


def _fill_placeholders(text: str, name: str) -> str:
    return text.replace("${PROJECT}", name).replace("${DESCRIPTION}", _DESCRIPTION)


def _build_project_file(text: str, backend: str | None) -> str:
    """Return Pulumi.yaml without the section of `pulumi new`, and with the backend."""
    text = text.partition("template:\n")[0]
    return text + (_BACKEND.format(url=_quote(backend)) if backend else "")


def _quote(text: str) -> str:
    return yaml.safe_dump(text, width=10_000).removesuffix("...\n").strip()


def _build_environment(settings: ProjectSettings) -> str:
    access = settings.lakekeeper
    document: dict[str, Any] = {"lakekeeper": _describe_lakekeeper(access) if access else {}}
    if settings.region:
        document["aws"] = {"region": settings.region}
    text = _ENVIRONMENT_HEAD + yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=118)
    Environment.parse(document, f"environments/{settings.environment}.yaml")
    return text


def _describe_lakekeeper(access: LakekeeperAccess) -> dict[str, Any]:
    authentication = {"kind": str(access.authentication)}
    if access.authentication is AuthenticationKind.TOKEN:
        authentication |= _drop_none(token=access.token)
    elif access.authentication is AuthenticationKind.CLIENT_CREDENTIALS:
        authentication |= _drop_none(
            token_url=access.token_url,
            client_id=access.client_id,
            client_secret=access.client_secret,
            scope=access.scope,
        )
    document: dict[str, Any] = {"endpoint": access.endpoint}
    if access.authentication is not AuthenticationKind.NONE:
        document["auth"] = authentication
        # Computing units show the token of their ServiceAccount; see docs/concepts/identities.md for other ways.
        document["jobs_auth"] = {"kind": "token-file", "path": "/var/run/secrets/lakekeeper/token"}
    return document | _drop_none(principal_arn=access.principal_arn)


def _drop_none(**values: str | None) -> dict[str, str]:
    return {name: value for name, value in values.items() if value is not None}
