"""`lakewright new`: write the spec of a new tenant. Asks for values that no option gives."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakewright.cli.completions import complete_environment
from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, load_project
from lakewright.project_files.stack_files import build_schema_comment
from lakewright.storage.registry import BACKENDS


class Preset(StrEnum):
    """Namespaces that a warehouse starts with."""

    TEXERA = "texera"
    NONE = "none"


class Destroying(StrEnum):
    """Effect of a deletion on tables."""

    PROTECT = "protect"
    RETAIN = "retain"
    PURGE = "purge"


class Unit(StrEnum):
    """The computing unit of a new tenant."""

    SPARK = "spark"
    TEXERA = "texera"
    NONE = "none"


Backend = Annotated[
    str | None,
    typer.Option(
        metavar=f"<{'|'.join(BACKENDS)}>",
        help="; ".join(f"{name}: {backend.summary}" for name, backend in BACKENDS.items()) + ".",
    ),
]

_HEAD = """\
config:
  lakewright:tenant:
"""


def new(
    tenant: Annotated[str, typer.Argument(help="Name of the tenant and its stack.")],
    *,
    owner: Annotated[str | None, typer.Option(help="Person or team responsible for the tenant.")] = None,
    environment: Annotated[
        str | None, typer.Option(help="NAME of environments/NAME.yaml.", autocompletion=complete_environment)
    ] = None,
    backend: Backend = None,
    bucket: Annotated[str | None, typer.Option(help="Name of the bucket.")] = None,
    region: Annotated[str | None, typer.Option(help="Region of the bucket.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Backend s3: address of the store.")] = None,
    access_key: Annotated[
        str | None, typer.Option(help="Backend s3: reference to the access key's id, such as config:KEY.")
    ] = None,
    secret_key: Annotated[
        str | None, typer.Option(help="Backend s3: reference to the secret key, such as config:KEY.")
    ] = None,
    account: Annotated[str | None, typer.Option(help="Backend adls: storage account of the container.")] = None,
    account_key: Annotated[
        str | None, typer.Option(help="Backend adls: reference to the account's key, such as config:KEY.")
    ] = None,
    service_account_key: Annotated[
        str | None, typer.Option(help="Backend gcs: reference to the key file of a service account.")
    ] = None,
    role_arn: Annotated[str | None, typer.Option(help="Backend existing: ARN of the tenant's role.")] = None,
    warehouse: Annotated[str | None, typer.Option(help="Name of the warehouse.")] = None,
    key_prefix: Annotated[
        str | None, typer.Option(help="Key prefix of the warehouse in the bucket. Default: the warehouse's name.")
    ] = None,
    preset: Annotated[Preset | None, typer.Option(help="Namespaces of an application.")] = None,
    namespace: Annotated[
        list[str] | None, typer.Option(help="Namespace of the warehouse, such as sales.daily; repeatable.")
    ] = None,
    soft_delete_days: Annotated[
        int | None, typer.Option(help="Days that dropped tables can be restored. Default: none.")
    ] = None,
    deletion: Annotated[Destroying | None, typer.Option(help="Effect of destroying the stack on tables.")] = None,
    computing_unit: Annotated[Unit | None, typer.Option(help="Runtime of a computing unit.")] = None,
    directory: Directory = HERE,
) -> None:
    """Write tenants/Pulumi.TENANT.yaml. Never overwrites a file and never writes an invalid spec.

    Example: lakewright new acme --owner data@acme.example --bucket acme-lakehouse
    """
    from lakewright.cli.commands.specs.spec_draft import SpecDraft, format_spec  # noqa: PLC0415 - `--help` needs no models

    if preset is not None and preset is not Preset.NONE and namespace:
        raise UsageError("`--preset` and `--namespace` both choose the namespaces; give one of them")
    project = load_project(directory)
    file = project.stack_file(tenant)
    if file.exists():
        raise UsageError(f"{file} exists already; edit it, or choose another name")
    draft = SpecDraft(tenant)
    environments = sorted(path.stem for path in (project.root / "environments").glob("*.yaml"))
    draft.ask(
        "environment",
        environment,
        f"environment ({', '.join(environments) or 'none exists'})",
        environments[0] if len(environments) == 1 else "sandbox",
    )
    draft.ask("owner", owner, "owner")
    draft.ask("storage.main.backend", backend, f"backend ({', '.join(BACKENDS)})", "aws")
    draft.ask("storage.main.bucket", bucket, "bucket", f"{tenant}-lakehouse")
    keys = {"access_key": access_key, "secret_key": secret_key}
    keys |= {"account_key": account_key, "service_account_key": service_account_key}
    options = {"endpoint": endpoint, **keys, "role_arn": role_arn, "account": account}
    draft.refuse_unused(options)
    open_questions = draft.ask_backend(options | {"region": region})
    if region:
        draft.set("storage.main.region", region)
    name = draft.ask("warehouses.0.name", warehouse, "warehouse", "executions")
    draft.ask("warehouses.0.key_prefix", key_prefix, "key prefix in the bucket", name)
    draft.ask_namespaces(preset, namespace)
    if soft_delete_days is not None:
        draft.set("warehouses.0.soft_delete_days", soft_delete_days)
    draft.ask("warehouses.0.deletion", deletion, "deletion (protect, retain, purge)", "protect")
    draft.ask_computing_unit(computing_unit, name)
    draft.check()

    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as out:
        out.write(build_schema_comment(project.root, file.parent) + _HEAD + format_spec(draft.spec))
    reserve = f"`lakewright byo reserve {tenant}`, then " if open_questions else ""
    print(f"Wrote {file}. Next: `lakewright stack init {tenant}`, then {reserve}`lakewright up {tenant}`")
