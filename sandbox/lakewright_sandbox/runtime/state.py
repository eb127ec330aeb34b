"""The state of a sandbox between runs: `DIR/sandbox.json` and the other files of `DIR`."""

from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from lakewright_sandbox.errors import SandboxStateError
from lakewright_sandbox.lakekeeper.protocol.versions import NEWEST, Version
from lakewright_sandbox.runtime.credentials import ADMIN, IamAccessKey, load, write_private

Authz = Literal["allowall", "openfga"]


class LakekeeperState(BaseModel):
    """The catalog's process, its authorization mode, and the Lakekeeper version that it emulates."""

    endpoint: str
    catalog_uri: str
    pid: int
    authz: Authz = "allowall"
    version: Version = NEWEST
    started_at: datetime | None = None


class AwsState(BaseModel):
    """The process that emulates AWS. Its data live in the process, so they are as old as `started_at` (UTC)."""

    endpoint: str
    region: str
    account_id: str
    pid: int
    catalog_principal_arn: str
    started_at: datetime | None = None


class TokensState(BaseModel):
    """The identity provider's process and its two clients, one for the stack and one for jobs. Secrets are in files."""

    issuer: str
    token_url: str
    audience: str
    client_id: str
    client_secret_file: Path
    jobs_client_id: str
    jobs_client_secret_file: Path
    pid: int
    started_at: datetime | None = None


class StoreState(BaseModel):
    """An S3 store besides the emulated AWS: the sandbox's own MinIO if it has a `pid`, else a running store.

    The keys are references to private files, as specs take them.
    """

    endpoint: str
    region: str
    access_key_id: str
    secret_access_key: str
    pid: int | None = None
    program: Path | None = None
    started_at: datetime | None = None


class Sandbox(BaseModel):
    """A started sandbox. It holds no secrets: the keys are in `credentials_file`.

    `tokens` is set if the catalog authenticates its callers.
    """

    version: int = 1
    id: str
    dir: Path
    lakekeeper: LakekeeperState
    aws: AwsState
    tokens: TokensState | None = None
    store: StoreState | None = None
    credentials_file: Path

    @property
    def admin(self) -> IamAccessKey:
        """Return the key pair of the user with full access."""
        return load(self.credentials_file)[ADMIN]


class Layout:
    """Paths of a sandbox's files."""

    def __init__(self, directory: Path) -> None:
        """Set the paths below a directory."""
        self.root = directory.expanduser().resolve()
        self.state = self.root / "sandbox.json"
        self.lock = self.root / "lock"
        self.logs = self.root / "logs"
        self.credentials = self.root / "credentials"
        self.clients = self.root / "clients"
        self.store = self.root / "store"
        self.store_key_id = self.store / "access_key_id"
        self.store_secret = self.store / "secret_access_key"
        self.store_data = self.store / "data"
        self.database = self.root / "lakekeeper.db"
        self.database_url = self.root / "database-url"

    @property
    def audit_log(self) -> Path:
        """The file of the catalog's audit events."""
        return self.logs / "lakekeeper-audit.jsonl"

    @property
    def trail(self) -> Path:
        """The file of the records of changes to AWS."""
        return self.logs / "cloudtrail.jsonl"

    def log(self, name: str) -> Path:
        """Return the log file of a process."""
        return self.logs / f"{name}.log"


def read(layout: Layout) -> Sandbox | None:
    """Return the sandbox's state, None if there is no sandbox. Raises SandboxStateError."""
    try:
        return Sandbox.model_validate_json(layout.state.read_text())
    except FileNotFoundError:
        return None
    except (ValidationError, UnicodeDecodeError) as error:
        raise SandboxStateError(
            f"{layout.state} is not a sandbox's state ({type(error).__name__}). "
            f"Delete it and run `lakewright sandbox up --dir {layout.root}` again."
        ) from error


def write(layout: Layout, sandbox: Sandbox) -> None:
    """Save the sandbox's state."""
    write_private(layout.state, (sandbox.model_dump_json(indent=2, exclude_none=True) + "\n").encode())


def read_database_url(layout: Layout) -> str:
    """Return the URL of the catalog's database: a SQLite file of the sandbox unless another was chosen."""
    try:
        return layout.database_url.read_text().strip()
    except FileNotFoundError:
        return f"sqlite:///{layout.database}"


def write_database_url(layout: Layout, url: str) -> None:
    """Save the URL of a chosen database, in a separate file because it may contain a password."""
    write_private(layout.database_url, (url + "\n").encode())
