"""`lakewright spec from-server`: write the specs of tenants that exist on a server and in no stack."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakewright.cli.completions import complete_environment
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, load_project
from lakewright.errors import LakewrightError
from lakewright.project_files.stack_files import build_schema_comment
from lakewright.terminal.escaping import escape_line

if TYPE_CHECKING:
    from lakewright_engine.project.project import PulumiProject

    from lakewright.discovery.declaration.tenant_spec import TenantDraft
    from lakewright.discovery.from_server import FromServerOptions, ServerReader


def from_server(
    *,
    project_id: Annotated[str | None, typer.Option("--project", help="Id of the project in Lakekeeper.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All projects of the server that no stack manages; one file each.")
    ] = False,
    environment: Annotated[
        str | None,
        typer.Option(
            help="NAME of environments/NAME.yaml. Default: the only environment.", autocompletion=complete_environment
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the tenant. Default: from the project's id or name.")
    ] = None,
    owner: Annotated[str, typer.Option(help="Person or team responsible for the tenant.")] = "unknown",
    access_key: Annotated[
        str | None, typer.Option(help="Reference to the id of the store's access key, such as config:KEY.")
    ] = None,
    secret_key: Annotated[str | None, typer.Option(help="Reference to the store's secret key.")] = None,
    bucket: Annotated[
        list[str] | None,
        typer.Option(help="Bucket of a store that the stack shall make and keep from now on; repeatable."),
    ] = None,
    without_tables: Annotated[
        list[str] | None,
        typer.Option(help="Leave out tables that match WAREHOUSE.NAMESPACE.TABLE, such as 'scratch.*'; repeatable."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="File to write; with --all a folder. Existing files are never overwritten.")
    ] = None,
    directory: Directory = HERE,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Write the spec of a tenant from a live Lakekeeper. Its first `up` takes everything over and changes nothing.

    Settings that a spec cannot express are listed with the reason. Only reads. Exit code 1 if a project cannot be
    declared.

    Example: lakewright spec from-server --project acme --output tenants/Pulumi.acme.yaml
    """
    from lakewright.discovery.from_server import FromServerOptions, ServerReader  # noqa: PLC0415
    from lakewright.environment.loading import load_environment  # noqa: PLC0415 - `--help` needs no models
    from lakewright.storage.live_storage import AccessKeys  # noqa: PLC0415

    _check_options(project_id, name, everything=everything)
    if everything and bucket:
        raise UsageError("`--bucket` names a bucket of one project; name the project with `--project`")
    if (access_key is None) != (secret_key is None):
        raise UsageError("expected `--access-key` and `--secret-key` together")
    for option, reference in (("--access-key", access_key), ("--secret-key", secret_key)):
        _check_reference(option, reference)
    project = load_project(directory)
    environment_name = environment or _only_environment(project)
    keys = AccessKeys(access_key, secret_key) if access_key and secret_key else None
    options = FromServerOptions(environment_name, owner, keys, tuple(without_tables or ()), tuple(bucket or ()))
    reader = ServerReader(load_environment(project, environment_name))
    written = _Written(project, reader, options, as_json=as_json)
    if everything:
        written.write_all(output or project.stack_config_dir)
    else:
        written.write_one(str(project_id), name, output)
    written.report()
    if written.failures:
        raise typer.Exit(1)


class _Written:
    """Specs that were written, and what could not be."""

    def __init__(
        self, project: PulumiProject, reader: ServerReader, options: FromServerOptions, *, as_json: bool
    ) -> None:
        self._project, self._reader, self._options, self._as_json = project, reader, options, as_json
        self._documents: list[dict[str, Any]] = []
        self._managed: dict[str, str] = {}
        self._empty: list[str] = []
        self.failures: list[dict[str, str]] = []

    def write_one(self, project_id: str, name: str | None, output: Path | None) -> None:
        """Write the spec of one project to a file, else to the standard output."""
        self._refuse_managed(project_id)
        if output is not None and output.exists() and not output.is_dir():
            raise UsageError(f"{output} exists already; name another file")
        draft = self._reader.draft(project_id, name, self._options)
        if output is not None and output.is_dir():
            output = output / f"Pulumi.{draft.spec['name']}.yaml"
        self._write(project_id, draft, output)

    def write_all(self, folder: Path) -> None:
        """Write a spec for each project that no stack manages."""
        from lakewright.discovery.declaration.omission import EmptyProjectError  # noqa: PLC0415

        folder.mkdir(parents=True, exist_ok=True)
        if not folder.is_dir():
            raise UsageError(f"{folder} is not a folder; `--all` writes one file for each project")
        managed = self._stacks_by_project()
        for project_id, project_name in sorted(self._reader.projects().items(), key=lambda entry: entry[1]):
            if project_id in managed:
                self._managed[project_id] = managed[project_id]
                continue
            try:
                draft = self._reader.draft(project_id, None, self._options)
                self._write(project_id, draft, folder / f"Pulumi.{draft.spec['name']}.yaml")
            except EmptyProjectError:
                self._empty.append(project_id)
            except LakewrightError as error:
                self.failures.append({"project": project_id, "name": project_name, "reason": str(error)})

    def report(self) -> None:
        """Print the summary to the standard error, or the whole report as JSON."""
        if self._as_json:
            report = {
                "version": 1,
                "server": self._reader.endpoint,
                "tenants": self._documents,
                "managed": self._managed,
                "empty": self._empty,
                "failures": self.failures,
            }
            print(json.dumps(report, indent=2, ensure_ascii=False))
            return
        for project_id, stack in self._managed.items():
            print(f"project {project_id}: left out; stack {stack} manages it", file=sys.stderr)
        for project_id in self._empty:
            print(f"project {project_id}: left out; it has no warehouse that this identity can see", file=sys.stderr)
        for failure in self.failures:
            print(f"project {failure['project']}: not written: {escape_line(failure['reason'])}", file=sys.stderr)
        if len(self._documents) > 1 or self._managed or self._empty or self.failures:
            print(
                f"{len(self._documents)} specs written, {len(self._managed)} projects managed already,"
                f" {len(self._empty)} empty, {len(self.failures)} not written",
                file=sys.stderr,
            )

    def _write(self, project_id: str, draft: TenantDraft, file: Path | None) -> None:
        from lakewright.discovery.declaration.stack_text import stack_text  # noqa: PLC0415

        folder = file.parent if file else self._project.stack_config_dir
        schema_comment = build_schema_comment(self._project.root, folder)
        text = stack_text(draft, f"project {project_id} at {self._reader.endpoint}", schema_comment)
        if file is not None:
            try:
                with file.open("x", encoding="utf-8") as out:
                    out.write(text)
            except FileExistsError:
                raise UsageError(f"{file} exists already; name another file, or move it away") from None
            except OSError as error:
                raise UsageError(f"{file} cannot be written: {error.strerror}") from None
        elif not self._as_json:
            sys.stdout.write(text)
        self._documents.append(
            {
                "project": project_id,
                "tenant": draft.spec["name"],
                "file": str(file) if file else None,
                "spec": draft.spec,
                "open_references": list(draft.open_references),
                "not_in_spec": [omission.to_json() for omission in draft.omissions],
            }
        )
        if not self._as_json:
            self._print_summary(project_id, draft, file)

    def _print_summary(self, project_id: str, draft: TenantDraft, file: Path | None) -> None:
        spec = draft.spec
        parts = {"storage": "storages", "warehouses": "warehouses", "tables": "tables", "views": "views"}
        parts |= {"grants": "grants", "role_members": "roles with members"}
        counted = ", ".join(f"{len(spec.get(part, ()))} {name}" for part, name in parts.items())
        lines = [f"project {project_id}: tenant {spec['name']}{f' in {file}' if file else ''}: {counted}"]
        for reference in draft.open_references:
            lines.append(f"  to do: {escape_line(reference)} is a placeholder, since the server does not show secrets")
        if draft.omissions:
            lines.append(f"  not in the spec ({len(draft.omissions)}); `up` leaves it as it is:")
            lines += [f"    {escape_line(omission)}" for omission in draft.omissions]
        print("\n".join(lines), file=sys.stderr)

    def _refuse_managed(self, project_id: str) -> None:
        if stack := self._stacks_by_project().get(project_id):
            raise UsageError(f"project {project_id} is managed by stack {stack}; only one stack may declare a tenant")

    def _stacks_by_project(self) -> dict[str, str]:
        """Return the stacks that manage projects of the server, by the project's id: from states and stack files."""
        from lakewright.discovery.survey.managing_stacks import find_managing_stacks  # noqa: PLC0415

        return find_managing_stacks(self._project, self._reader.endpoint, self._options.environment)


def _check_options(project_id: str | None, name: str | None, *, everything: bool) -> None:
    if everything == (project_id is not None):
        raise UsageError("name a project with `--project ID`, or all of them with `--all`")
    if everything and name:
        raise UsageError("`--name` names one tenant; with `--all`, the names come from the projects")


def _check_reference(option: str, reference: str | None) -> None:
    from lakewright.credentials.references import check_reference  # noqa: PLC0415 - `--help` needs no models

    try:
        if reference is not None:
            check_reference(reference)
    except ValueError as error:  # the message never repeats the value
        raise UsageError(f"{option}: {error}") from None


def _only_environment(project: PulumiProject) -> str:
    environments = sorted(file.stem for file in (project.root / "environments").glob("*.yaml"))
    if len(environments) == 1:
        return environments[0]
    raise UsageError(f"name the environment with `--environment`; the project has: {', '.join(environments) or 'none'}")
