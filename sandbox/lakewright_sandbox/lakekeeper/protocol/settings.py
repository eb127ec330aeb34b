"""What the server is started with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from .versions import RELEASED, Version, is_at_least

NIL_PROJECT = "00000000-0000-0000-0000-000000000000"
DATABASE_VARIABLE = "LAKEWRIGHT_SANDBOX_DATABASE"
"""Names the database where the command line does not: a URL may have a password in it, which `ps` would show."""


@dataclass(frozen=True)
class Settings:
    """The sandbox's counterpart of Lakekeeper's environment variables; the defaults are the real server's.

    `aws_endpoint` plays AWS for storage profiles that name no endpoint of their own. `credentials_file` and
    `profile` name the base identity behind `aws-system-identity`, read again at every use.
    An OpenID provider turns authentication on, a Kubernetes cluster does, and both may be there. Without
    `openid_audiences` the audience of its tokens is not checked. Without `kubernetes_audiences` tokens of the cluster's
    own audience are accepted, and no others. (The real server asks the cluster about each token; here its keys are
    enough.)
    Where tokens have `openid_roles_claim` and `default_project` is empty, requests have to name their project.
    With `maintenance_queues` the server has the queues of Lakekeeper's enterprise edition, whose configuration is kept
    and whose work is not done.
    A drop that does not say whether to purge is purged with a delay: Spark's `DROP TABLE ... PURGE` is such a drop,
    after which Spark deletes the files itself and must find them. (The real server polls its queues every 10 s.)
    """

    database: str
    version: Version = RELEASED
    aws_endpoint: str | None = None
    credentials_file: Path | None = None
    profile: str = "lakekeeper"
    aws_system_identity: bool = False
    direct_system_identity: bool = False
    require_external_id: bool = True
    skip_storage_validation: bool = False
    instance_admin: bool = False
    openid_provider_uri: str | None = None
    openid_audiences: tuple[str, ...] = ()
    openid_roles_claim: str | None = None
    openid_subject_claims: tuple[str, ...] = ("oid", "sub")
    kubernetes_issuer: str | None = None
    kubernetes_audiences: tuple[str, ...] = ()
    kubernetes_subject: Literal["uid", "username"] = "uid"
    authorizer: Literal["allowall", "openfga"] = "allowall"
    default_project: str = NIL_PROJECT
    reserved_namespaces: tuple[str, ...] = ("system", "examples", "information_schema")
    page_size_default: int = 100
    page_size_max: int = 1000
    task_poll_seconds: float = 0.2
    unasked_purge_delay_seconds: int = 5
    idempotency_seconds: int = 1800
    status_cache_seconds: int = 60
    maintenance_queues: bool = False

    def since(self, version: str) -> bool:
        """Whether the server that is played is of that version or newer."""
        return is_at_least(self.version, version)

    @property
    def openfga(self) -> bool:
        """Whether grants are enforced. They are kept either way."""
        return self.authorizer == "openfga"
