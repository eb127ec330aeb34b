"""`lakewright init`: create a project in a folder, for any name, cloud, Lakekeeper and CI system."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from lakewright.cli.errors import UsageError
from lakewright.cli.questions import ask
from lakewright.new_project.settings import (
    Addition,
    AuthenticationKind,
    CiSystem,
    Cloud,
    LakekeeperAccess,
    ProjectSettings,
)

_COMMAND = "lakewright init"
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")
"""Names that Pulumi accepts for projects (`tokens.ValidateProjectName` in its SDK)."""

_AUTHENTICATION_OPTIONS = {
    AuthenticationKind.TOKEN: ("token",),
    AuthenticationKind.CLIENT_CREDENTIALS: ("token_url", "client_id", "client_secret", "scope"),
}
"""Options that only one kind of authentication uses."""

Name = Annotated[str | None, typer.Option(help="Name of the Pulumi project. Default: the folder's name.")]
Lakekeeper = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of Lakekeeper, such as https://lakekeeper.example.")
]
Principal = Annotated[
    str | None,
    typer.Option("--principal-arn", help="AWS identity that Lakekeeper runs as; the tenants' roles trust it."),
]
SecretReference = Annotated[
    str | None, typer.Option(metavar="REFERENCE", help="Reference to the client's secret, such as env:NAME.")
]


def init(
    folder: Annotated[Path | None, typer.Argument(metavar="DIR", help="Folder of the project; made if needed.")] = None,
    *,
    name: Name = None,
    cloud: Annotated[Cloud | None, typer.Option(help="sandbox: this machine; s3: an S3-compatible store.")] = None,
    lakekeeper: Lakekeeper = None,
    auth: Annotated[AuthenticationKind | None, typer.Option(help="How stacks authenticate to Lakekeeper.")] = None,
    token: Annotated[
        str | None, typer.Option(metavar="REFERENCE", help="Reference to a token, such as env:NAME.")
    ] = None,
    token_url: Annotated[str | None, typer.Option(metavar="URL", help="Token endpoint of the OAuth2 client.")] = None,
    client_id: Annotated[str | None, typer.Option(help="Id of the OAuth2 client.")] = None,
    client_secret: SecretReference = None,
    scope: Annotated[str | None, typer.Option(help="Scope of the OAuth2 client's tokens.")] = None,
    region: Annotated[str | None, typer.Option(help="AWS region of buckets that name none.")] = None,
    principal_arn: Principal = None,
    backend: Annotated[
        str | None, typer.Option(metavar="URL", help="Backend of the states. Default: the project's folder.")
    ] = None,
    ci: Annotated[CiSystem | None, typer.Option(help="CI system whose files are written.")] = None,
    environment: Annotated[str | None, typer.Option(help="Name of the environment.")] = None,
    additions: Annotated[
        list[Addition] | None, typer.Option("--with", help="Also write this part; repeatable.")
    ] = None,
    from_server: Annotated[
        bool, typer.Option("--from-server", help="Also write the specs of the server's projects.")
    ] = False,
    template_path: Annotated[
        bool, typer.Option("--template-path", help="Print the folder of the template for `pulumi new`, and exit.")
    ] = False,
) -> None:
    """Create a project: Pulumi.yaml, the program, an environment, requirements, CI and a test of the specs.

    Asks at a terminal for values that no option gives. Never overwrites a file.

    Example: lakewright init lakehouse --cloud sandbox --ci github
    """
    from lakewright.new_project.files import TEMPLATE, build_files, find_existing, write_files  # noqa: PLC0415

    if template_path:
        print(TEMPLATE)
        return
    if folder is None:
        raise UsageError("name the folder of the project: `lakewright init DIR`; `.` is this folder")
    project_name = _find_name(name, folder)
    chosen_cloud = Cloud(_choose(cloud, "cloud", Cloud, Cloud.SANDBOX))
    access = None
    if chosen_cloud is not Cloud.SANDBOX:
        access = _describe_access(
            LakekeeperAccess(
                endpoint=ask(lakekeeper, "address of Lakekeeper", command=_COMMAND),
                authentication=AuthenticationKind(
                    _choose(auth, "authentication", AuthenticationKind, AuthenticationKind.NONE)
                ),
                token=token,
                token_url=token_url,
                client_id=client_id,
                client_secret=client_secret,
                scope=scope,
                principal_arn=principal_arn,
            ),
            asks_principal=chosen_cloud is Cloud.AWS,
        )
        if chosen_cloud is Cloud.AWS:
            region = ask(region, "AWS region", "us-east-1", command=_COMMAND)
    else:
        client = {"token_url": token_url, "client_id": client_id, "client_secret": client_secret, "scope": scope}
        server = {"lakekeeper": lakekeeper, "auth": auth, "token": token, "principal_arn": principal_arn}
        reason = "`--cloud sandbox` does not use them; pass `--cloud aws` or `--cloud s3`, or leave them out"
        _refuse_options(reason, server | client | {"region": region})
    default_environment = "sandbox" if chosen_cloud is Cloud.SANDBOX else "production"
    chosen_environment = ask(
        environment,
        "name of the environment",
        default_environment,
        command=_COMMAND,
        find_problem=_find_environment_problem,
    )
    if problem := _find_environment_problem(chosen_environment):
        raise UsageError(f"--environment {problem}")
    settings = ProjectSettings(
        name=project_name,
        cloud=chosen_cloud,
        environment=chosen_environment,
        lakekeeper=access,
        region=region,
        backend=ask(backend, "URL of the backend (empty: the project's folder)", "", command=_COMMAND) or None,
        ci=CiSystem(_choose(ci, "CI system", CiSystem, CiSystem.NONE)),
        additions=tuple(additions or ()),
    )
    files = build_files(settings)
    if not folder.is_dir() and (folder.exists() or folder.is_symlink()):
        raise UsageError(f"{folder} exists and is no folder; name another folder")
    if existing := find_existing(folder, files):
        raise UsageError(
            f"{folder} has files that `lakewright init` would write, and nothing was written: {', '.join(existing)}."
            " Move them away, or name another folder; `lakewright upgrade` converts an older project"
        )
    write_files(folder, files)
    print(f"Wrote {len(files)} files to {folder}: {', '.join(sorted({path.split('/')[0] for path in files}))}")
    steps = _list_next_steps(folder, settings, has_specs=from_server)
    if from_server:
        _write_specs(folder, settings.environment)
    print("Next:\n" + "\n".join(f"  {step}" for step in steps))


def _find_name(name: str | None, folder: Path) -> str:
    project_name = name or re.sub(r"[^A-Za-z0-9_.-]", "-", folder.resolve().name) or "lakehouse"
    if not _NAME.fullmatch(project_name):
        raise UsageError(
            f"--name {project_name}: expected at most 100 letters, digits, hyphens, underscores and periods"
        )
    return project_name


def _find_environment_problem(name: str) -> str:
    if re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        return ""
    return f"{name}: expected lower-case letters, digits and hyphens, such as `production`"


def _choose(
    value: Cloud | AuthenticationKind | CiSystem | None,
    question: str,
    choices: type[Cloud] | type[AuthenticationKind] | type[CiSystem],
    default: str,
) -> str:
    names = [str(choice) for choice in choices]

    def find_problem(reply: str) -> str:
        return "" if reply in names else f"{reply}: expected one of {', '.join(names)}"

    return ask(value, f"{question} ({', '.join(names)})", default, command=_COMMAND, find_problem=find_problem)


def _describe_access(access: LakekeeperAccess, *, asks_principal: bool) -> LakekeeperAccess:
    """Return the access with the values that its kind of authentication needs.

    Raises:
        UsageError: An option belongs to another kind.
    """
    for kind, options in _AUTHENTICATION_OPTIONS.items():
        if kind is not access.authentication:
            reason = f"`--auth {access.authentication}` does not use them; pass `--auth {kind}`, or leave them out"
            _refuse_options(reason, {name: getattr(access, name) for name in options})
    if access.authentication is AuthenticationKind.TOKEN:
        access = replace(
            access, token=ask(access.token, "reference to the token", "env:LAKEKEEPER_TOKEN", command=_COMMAND)
        )
    if access.authentication is AuthenticationKind.CLIENT_CREDENTIALS:
        access = replace(
            access,
            token_url=ask(access.token_url, "token endpoint", command=_COMMAND),
            client_id=ask(access.client_id, "client id", "lakewright", command=_COMMAND),
            client_secret=ask(
                access.client_secret,
                "reference to the client's secret",
                "env:LAKEWRIGHT_CLIENT_SECRET",
                command=_COMMAND,
            ),
            scope=ask(access.scope, "scope", "lakekeeper", command=_COMMAND) or None,
        )
    if asks_principal:
        principal = ask(access.principal_arn, "ARN of Lakekeeper's AWS identity", "", command=_COMMAND)
        access = replace(access, principal_arn=principal or None)
    return access


def _refuse_options(reason: str, values: Mapping[str, str | None]) -> None:
    """Refuse the options that are given, for a reason. Raises UsageError."""
    if names := [f"--{name.replace('_', '-')}" for name, value in values.items() if value is not None]:
        raise UsageError(f"{', '.join(names)}: {reason}")


def _write_specs(folder: Path, environment: str) -> None:
    """Write the specs of the server's projects into the folder of the specs."""
    from lakewright.cli.commands.specs.from_server import from_server  # noqa: PLC0415 - only if asked for

    from_server(everything=True, environment=environment, directory=folder)


def _list_next_steps(folder: Path, settings: ProjectSettings, *, has_specs: bool) -> list[str]:
    steps = [f"cd {shlex.quote(str(folder))}"] if folder.resolve() != Path.cwd() else []
    steps.append("python3 -m venv .venv && .venv/bin/pip install -r requirements.txt && . .venv/bin/activate")
    if settings.cloud is Cloud.SANDBOX:
        steps.append("lakewright sandbox up")
    steps.append("lakewright doctor")
    steps.append("lakewright spec validate" if has_specs else "lakewright new acme --owner you@example.com")
    return steps
