"""The commands `lakewright sandbox up`, `reset`, `status` and `down`."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from lakewright_sandbox import lifecycle
from lakewright_sandbox.errors import SandboxError, SandboxOptionsError
from lakewright_sandbox.lakekeeper.protocol.settings import DATABASE_VARIABLE
from lakewright_sandbox.lakekeeper.protocol.versions import Version
from lakewright_sandbox.runtime.state import Authz, Sandbox
from lakewright_sandbox.store.access import KEY_VARIABLES

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    name="sandbox",
    add_completion=False,
    help="Local stand-ins for the cloud: S3, IAM, STS and a Lakekeeper.",
)

Dir = Annotated[Path, typer.Option("--dir", help="Directory of the sandbox's data, keys and logs.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, with the admin keys.")]


Database = Annotated[
    str | None,
    typer.Option(
        envvar=DATABASE_VARIABLE,
        help="SQLAlchemy URL for the catalog, such as postgresql+psycopg://…; kept. Pass a password in the"
        " variable, PGPASSWORD or PGPASSFILE: other users can see a command line.",
    ),
]
AuthzMode = Annotated[
    Authz | None,
    typer.Option(help="Whether the catalog enforces grants (openfga, with tokens) or not (allowall); kept."),
]
AuthMode = Annotated[
    lifecycle.Auth | None,
    typer.Option(help="Whether the catalog requires tokens of the sandbox's own identity provider; kept."),
]
ServerVersion = Annotated[
    Version | None,
    typer.Option(help="Lakekeeper version that the catalog emulates (default: the newest release); kept."),
]
Store = Annotated[
    str | None,
    typer.Option(
        help="Store for tenants: moto (the emulated AWS), minio (a MinIO of the sandbox, built once), or the"
        f" address of a running store, whose keys are in {' and '.join(KEY_VARIABLES)}; kept."
    ),
]
StoreRegion = Annotated[str | None, typer.Option(help="Region of a running store (default: us-east-1); kept.")]


@app.command()
def up(
    directory: Dir = lifecycle.DEFAULT_DIR,
    *,
    as_json: Json = False,
    database: Database = None,
    authz: AuthzMode = None,
    auth: AuthMode = None,
    version: ServerVersion = None,
    s3: Store = None,
    s3_region: StoreRegion = None,
) -> None:
    """Start the sandbox, or its processes that do not run, and wait until it is healthy.

    Example: lakewright sandbox up --dir .sandbox
    """
    options = lifecycle.SandboxOptions(
        database=database, authz=authz, auth=auth, version=version, s3=s3, s3_region=s3_region
    )
    try:
        result = lifecycle.bring_up(directory, options)
    except SandboxError as error:
        raise _fail(error) from None
    sandbox = result.sandbox
    if as_json:
        typer.echo(json.dumps(_with_keys(sandbox), indent=2))
        return
    if not result.started:
        typer.echo(f"The sandbox in {sandbox.dir} is already running.")
    elif "aws" not in result.started or "lakekeeper" not in result.started:
        typer.echo(f"Restarted {' and '.join(result.started)} of the sandbox in {sandbox.dir}.")
    else:
        typer.echo(f"The sandbox in {sandbox.dir} is up.")
    _print_endpoints(sandbox)


@app.command()
def reset(
    directory: Dir = lifecycle.DEFAULT_DIR,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Json = False,
    authz: AuthzMode = None,
    auth: AuthMode = None,
    version: ServerVersion = None,
) -> None:
    """Delete the catalog, buckets and roles of the sandbox, and start it again empty. Keys and options remain.

    Example: lakewright sandbox reset --authz openfga --yes
    """
    if not yes:
        if as_json or not sys.stdin.isatty():
            raise _fail(SandboxOptionsError("`sandbox reset` deletes data; it needs --yes without a terminal."))
        typer.confirm(
            f"This deletes the catalog, buckets and roles of the sandbox in {directory}. Continue?", abort=True
        )
    try:
        result = lifecycle.reset(directory, lifecycle.SandboxOptions(authz=authz, auth=auth, version=version))
    except SandboxError as error:
        raise _fail(error) from None
    if as_json:
        typer.echo(json.dumps(_with_keys(result.sandbox), indent=2))
        return
    typer.echo(f"The sandbox in {result.sandbox.dir} is empty and up.")
    _print_endpoints(result.sandbox)
    typer.echo(
        "Stacks that were deployed to it still have their states; `lakewright stack rm STACK --force` removes one."
    )


@app.command()
def status(directory: Dir = lifecycle.DEFAULT_DIR, *, as_json: Json = False) -> None:
    """Report whether the sandbox is running. Exit code 0 if all of it is, 3 if not, 1 if there is none.

    Example: lakewright sandbox status --json
    """
    try:
        current = lifecycle.status(directory)
    except SandboxError as error:
        raise _fail(error) from None
    sandbox = current.sandbox
    if as_json:
        running = {"aws": current.aws_running, "lakekeeper": current.lakekeeper_running}
        running |= {"tokens": current.tokens_running} if sandbox.tokens else {}
        running |= {"store": current.store_running} if sandbox.store and sandbox.store.pid else {}
        typer.echo(json.dumps(_with_keys(sandbox) | {"running": running}, indent=2))
    else:
        typer.echo(f"AWS         {_describe_state(running=current.aws_running)}  {sandbox.aws.endpoint}")
        typer.echo(f"Lakekeeper  {_describe_state(running=current.lakekeeper_running)}  {sandbox.lakekeeper.endpoint}")
        if sandbox.tokens:
            typer.echo(f"Tokens      {_describe_state(running=current.tokens_running)}  {sandbox.tokens.issuer}")
        if sandbox.store and sandbox.store.pid:
            typer.echo(f"MinIO       {_describe_state(running=current.store_running)}  {sandbox.store.endpoint}")
        if current.aws_running:
            typer.echo(
                "Buckets, objects and roles live as long as the AWS process: "
                f"since {sandbox.aws.started_at:%F %T} UTC. The catalog and the keys survive a restart."
            )
        if not current.running:
            typer.echo(f"Start it with `lakewright sandbox up --dir {sandbox.dir}`.")
    if not current.running:
        raise typer.Exit(3)


@app.command()
def down(
    directory: Dir = lifecycle.DEFAULT_DIR,
    *,
    purge: Annotated[bool, typer.Option("--purge", help="Remove the catalog's data and the keys, too.")] = False,
) -> None:
    """Stop the sandbox's processes. The catalog's data remain; buckets and roles end with the AWS process.

    Example: lakewright sandbox down --purge
    """
    try:
        stopped = lifecycle.down(directory, purge=purge)
    except SandboxError as error:
        raise _fail(error) from None
    typer.echo(f"Stopped: {', '.join(stopped)}." if stopped else "Nothing of the sandbox was running.")
    if purge:
        typer.echo("Its data and keys are removed.")


def _print_endpoints(sandbox: Sandbox) -> None:
    typer.echo(f"  Lakekeeper   {sandbox.lakekeeper.endpoint}")
    typer.echo(f"  AWS          {sandbox.aws.endpoint}  (S3, IAM, STS; region {sandbox.aws.region})")
    if sandbox.tokens:
        typer.echo(f"  tokens       {sandbox.tokens.token_url}  (client `{sandbox.tokens.client_id}`)")
    typer.echo(f"  credentials  {sandbox.credentials_file}  (profiles admin, lakekeeper)")
    if store := sandbox.store:
        typer.echo(f"  store        {store.endpoint}  (S3, STS; region {store.region}). In a spec, under `storage`:")
        credential = f"{{access_key_id: '{store.access_key_id}', secret_access_key: '{store.secret_access_key}'}}"
        typer.echo(f"    main: {{backend: s3, bucket: NAME, create: true, endpoint: '{store.endpoint}',")
        typer.echo(f"           region: {store.region}, credential: {credential}}}")


def _with_keys(sandbox: Sandbox) -> dict[str, Any]:
    admin = sandbox.admin
    return sandbox.model_dump(mode="json", exclude_none=True) | {
        "admin": {
            "access_key_id": admin.access_key_id,
            "secret_access_key": admin.secret_access_key.get_secret_value(),
        }
    }


def _describe_state(*, running: bool) -> str:
    return "running" if running else "stopped"


def _fail(error: SandboxError) -> typer.Exit:
    Console(stderr=True).print(f"error: {error}", markup=False, highlight=False, soft_wrap=True)
    return typer.Exit(2 if isinstance(error, SandboxOptionsError) else 1)
