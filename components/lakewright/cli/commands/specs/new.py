"""`lakewright new`: write the spec of a new tenant. Asks for values that no option gives."""

from __future__ import annotations

import sys
from copy import deepcopy
from enum import StrEnum
from typing import Annotated, Any, cast

import typer
import yaml

from lakewright.cli.errors import UsageError
from lakewright.cli.options import HERE, Directory, load_project
from lakewright.storage.backend import Question
from lakewright.storage.registry import BACKENDS, find_backend


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
# yaml-language-server: $schema=../docs/schema/tenant.schema.json
config:
  lakewright:tenant:
"""


def new(
    tenant: Annotated[str, typer.Argument(help="Name of the tenant and its stack.")],
    *,
    owner: Annotated[str | None, typer.Option(help="Person or team responsible for the tenant.")] = None,
    environment: Annotated[str | None, typer.Option(help="NAME of environments/NAME.yaml.")] = None,
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
    role_arn: Annotated[str | None, typer.Option(help="Backend existing: ARN of the tenant's role.")] = None,
    warehouse: Annotated[str | None, typer.Option(help="Name of the warehouse.")] = None,
    preset: Annotated[Preset | None, typer.Option(help="Namespaces of an application.")] = None,
    deletion: Annotated[Destroying | None, typer.Option(help="Effect of destroying the stack on tables.")] = None,
    computing_unit: Annotated[Unit | None, typer.Option(help="Runtime of a computing unit.")] = None,
    directory: Directory = HERE,
) -> None:
    """Write tenants/Pulumi.TENANT.yaml. Never overwrites a file and never writes an invalid spec.

    Example: lakewright new acme --owner data@acme.example --bucket acme-lakehouse
    """
    from lakewright.spec import parse_spec  # noqa: PLC0415 - `--help` needs no models

    project = load_project(directory)
    file = project.stack_file(tenant)
    if file.exists():
        raise UsageError(f"{file} exists already; edit it, or choose another name")
    environments = ", ".join(sorted(file_path.stem for file_path in (project.root / "environments").glob("*.yaml")))

    store: dict[str, Any] = {"backend": _answer(backend, f"backend ({', '.join(BACKENDS)})", "aws")}
    store["bucket"] = _answer(bucket, "bucket", f"{tenant}-lakehouse")
    options = {"endpoint": endpoint, "access_key": access_key, "secret_key": secret_key, "role_arn": role_arn}
    options["region"] = region
    chosen_backend = find_backend(store)
    open_questions: list[Question] = []
    # The check of the whole spec refuses an unknown backend, together with other mistakes.
    for question in chosen_backend.questions if chosen_backend else ():
        default = "" if question.until_known else question.default
        if answer := _answer(options.get(question.option), question.text, default):
            _set_value(store, question.path, answer)
        else:
            open_questions.append(question)
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
    if (preset_name := _answer(preset, "namespaces (texera, none)", "none")) != "none":
        spec["warehouses"][0]["namespaces"] = {"preset": preset_name}
    if (runtime := _answer(computing_unit, "computing unit (spark, texera, none)", "none")) != "none":
        spec["computing_units"] = [{"name": runtime, "runtime": runtime, "warehouse": name}]

    checked = deepcopy(spec)
    for question in open_questions:
        _set_value(checked["storage"]["main"], question.path, question.until_known or "")
    parse_spec(checked, f"the spec of {tenant}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("x", encoding="utf-8") as out:
        out.write(_HEAD + _text(spec))
    reserve = f"`lakewright byo reserve {tenant}`, then " if open_questions else ""
    print(f"Wrote {file}. Next: `lakewright stack init {tenant}`, then {reserve}`lakewright up {tenant}`")


def _answer(option_value: str | None, question: str, default: str | None = None) -> str:
    """Return the option's value, else the user's input, else the default.

    Raises:
        UsageError: There is no default, and no terminal to ask at.
    """
    if option_value is not None:
        return str(option_value)
    if sys.stdin.isatty():
        return typer.prompt(question, default=default)
    if default is None:
        raise UsageError(
            f"no value for the {question}, and no terminal to ask at; give it as an option (`lakewright new --help`)"
        )
    return default


def _set_value(document: dict[str, Any], path: str, value: str) -> None:
    """Set the value at a dotted path."""
    *sections, key = path.split(".")
    for section in sections:
        document = document.setdefault(section, {})
    document[key] = value


def _text(spec: dict[str, Any]) -> str:
    """Return the spec as YAML, with a section per key and one line per entry."""
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
    from lakewright_engine.project.yaml_text import GoSafeDumper  # noqa: PLC0415 - `--help` needs no engine

    text = yaml.dump(
        value, Dumper=GoSafeDumper, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000
    )
    return text.removesuffix("...\n").rstrip("\n")
