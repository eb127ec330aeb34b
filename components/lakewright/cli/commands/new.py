"""`lakewright new`: write the spec of a new tenant, asking for what no option says."""

from __future__ import annotations

import sys
from typing import Annotated, Any, cast

import typer
import yaml

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, load_project

Backend = Annotated[
    str | None, typer.Option(help="aws: make a bucket; s3: a store that exists; existing: the tenant's.")
]

_HEAD = """\
# yaml-language-server: $schema=../docs/schema/tenant.schema.json
config:
  lakewright:tenant:
"""


def new(
    tenant: Annotated[str, typer.Argument(help="The tenant's name; the stack has the same.")],
    *,
    owner: Annotated[str | None, typer.Option(help="Who answers for the tenant.")] = None,
    environment: Annotated[str | None, typer.Option(help="NAME of environments/NAME.yaml.")] = None,
    backend: Backend = None,
    bucket: Annotated[str | None, typer.Option(help="The bucket's name.")] = None,
    region: Annotated[str | None, typer.Option(help="The bucket's region.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Backend s3: the store's address.")] = None,
    access_key: Annotated[str | None, typer.Option(help="Backend s3: reference to the key's id, config:KEY.")] = None,
    secret_key: Annotated[str | None, typer.Option(help="Backend s3: reference to the secret, config:KEY.")] = None,
    role_arn: Annotated[str | None, typer.Option(help="Backend existing: the tenant's role.")] = None,
    warehouse: Annotated[str | None, typer.Option(help="The warehouse's name.")] = None,
    preset: Annotated[str | None, typer.Option(help="Namespaces of an application: texera, or none.")] = None,
    deletion: Annotated[
        str | None, typer.Option(help="What destroying does to tables: protect, retain, purge.")
    ] = None,
    computing_unit: Annotated[str | None, typer.Option(help="spark or texera: one unit; none: no unit.")] = None,
    directory: Directory = HERE,
) -> None:
    """Write tenants/Pulumi.TENANT.yaml. Never overwrites a file, and never writes a spec that is not valid."""
    from lakewright.spec import parse_spec  # noqa: PLC0415 - `--help` needs no models

    project = load_project(directory)
    file = project.stack_file(tenant)
    if file.exists():
        raise UsageError(f"{file} exists already; edit it, or choose another name")
    environments = ", ".join(sorted(found.stem for found in (project.root / "environments").glob("*.yaml")))

    store: dict[str, Any] = {"backend": _answer(backend, "backend (aws, s3, existing)", "aws")}
    store["bucket"] = _answer(bucket, "bucket", f"{tenant}-lakehouse")
    match store["backend"]:
        case "s3":
            store["endpoint"] = _answer(endpoint, "endpoint of the store")
            store["credential"] = {
                "access_key_id": _answer(access_key, "reference to the access key's id", "config:store_access_key_id"),
                "secret_access_key": _answer(
                    secret_key, "reference to the secret key", "config:store_secret_access_key"
                ),
            }
        case "existing":
            region = _answer(region, "region of the bucket")
            store["role_arn"] = _answer(role_arn, "ARN of the tenant's role")
        case _:
            pass
    if region:
        store["region"] = region
    name = _answer(warehouse, "warehouse", "executions")
    spec: dict[str, Any] = {
        "version": 1,
        "environment": _answer(environment, f"environment ({environments})", "sandbox"),
        "name": tenant,
        "owner": _answer(owner, "owner"),
        "storage": {"main": store},
        "warehouses": [{"name": name, "deletion": _answer(deletion, "deletion (protect, retain, purge)", "protect")}],
    }
    if (chosen := _answer(preset, "namespaces (texera, none)", "none")) != "none":
        spec["warehouses"][0]["namespaces"] = {"preset": chosen}
    if (runtime := _answer(computing_unit, "computing unit (spark, texera, none)", "none")) != "none":
        spec["computing_units"] = [{"name": runtime, "runtime": runtime, "warehouse": name}]

    parse_spec(spec, f"the spec of {tenant}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as out:
        out.write(_HEAD + _text(spec))
    print(f"Wrote {file}. Next: lakewright stack init --stack {tenant}, then lakewright up --stack {tenant}")


def _answer(given: str | None, question: str, default: str | None = None) -> str:
    """What an option said, else what the person says, else the default; UsageError if nobody can be asked."""
    if given is not None:
        return given
    if sys.stdin.isatty():
        return typer.prompt(question, default=default)
    if default is None:
        raise UsageError(f"nobody to ask for the {question}: give it as an option (see `lakewright new --help`)")
    return default


def _text(spec: dict[str, Any]) -> str:
    """The spec as a person would lay it out: sections, one line for what is small."""
    lines: list[str] = []
    for section, value in spec.items():
        match value:
            case dict():
                entries = cast(dict[str, Any], value).items()
                lines += ["", f"{section}:", *(f"  {name}: {_flow(item)}" for name, item in entries)]
            case list():
                lines += ["", f"{section}:", *(f"  - {_flow(item)}" for item in cast(list[Any], value))]
            case _:
                lines.append(f"{section}: {_flow(value)}")
    return "".join(f"    {line}\n" if line else "\n" for line in lines)


def _flow(value: Any) -> str:
    text = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000)
    return text.removesuffix("...\n").rstrip("\n")
