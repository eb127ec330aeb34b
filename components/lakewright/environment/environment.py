"""Settings that tenants share: Lakekeeper, AWS and the cluster. Read from environments/NAME.yaml."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, cast

import yaml
from lakewright_spark.catalog.auth import CatalogAuth, NoAuth
from lakewright_spark.suggestions import suggest_name
from pydantic import AfterValidator, Field, ValidationError, model_validator

from lakewright.directories.registry import DirectorySettings
from lakewright.environment.cluster import Cluster
from lakewright.environment.drift_settings import EnvironmentDrift
from lakewright.environment.platform_reference import (
    PlatformReader,
    PlatformReference,
    platform_document,
    read_platform_name,
)
from lakewright.environment.tenant_spec_rules import TenantSpecRules
from lakewright.kubernetes import jobs_identity, trust
from lakewright.kubernetes.jobs_identity import AUDIENCE, PodIdentity
from lakewright.lakekeeper.api.connection.server import NoServerAuth, ServerAuth, ServerRef
from lakewright.names.host_kinds import leaves_without_tls
from lakewright.names.object_names import TENANT
from lakewright.names.types import (
    AwsTagKey,
    AwsTagValue,
    PolicyArn,
    PrincipalArn,
    Region,
    ServiceUrl,
    StorageEndpoint,
)
from lakewright.validation.documents import as_mapping, join_names
from lakewright.validation.positions import locate_problems, make_syntax_problem
from lakewright.validation.problems import Problem, SpecError, list_problems
from lakewright.validation.strict_model import StrictModel
from lakewright.validation.yaml_text import load_yaml

SANDBOX_VARIABLE = "LAKEWRIGHT_SANDBOX"
_SANDBOX_STATE = "sandbox.json"
"""Folder of a sandbox, relative to the project's root. It replaces `sandbox` of environments that set it."""

AUDIT_LOG = Path("logs") / "lakekeeper-audit.jsonl"
"""File of Lakekeeper's audit events in the folder of a sandbox."""

_PATHS = (
    ("lakekeeper", "ca_bundle"),
    ("aws", "shared_credentials_file"),
    ("kubernetes", "render_to"),
    ("kubernetes", "ca_bundle", "file"),
)
"""Keys of the values that are paths, from the outermost to the innermost."""

SANDBOX_RULES: Mapping[str, list[str]] = {
    "references": ["config:", "env:"],
    "endpoints": ["http://127.0.0.1:*", "http://localhost:*"],
}
"""Rules for specs in a sandbox: they may name environment variables, and stores on the same machine."""


def _absolute(path: str) -> str:
    # A path on another machine: it cannot be resolved or checked here.
    if not PurePosixPath(path).is_absolute():
        raise ValueError(
            "expected an absolute path, as in `/etc/ssl/certs/platform.pem`, on the machines that run jobs"
        )
    return path


PathOfJobs = Annotated[str, AfterValidator(_absolute)]
TokenAudience = Annotated[str, Field(min_length=1)]


class LakekeeperSettings(StrictModel):
    """The Lakekeeper that serves the tenants."""

    endpoint: ServiceUrl
    catalog_uri: ServiceUrl | None = None
    """Address of the catalog for jobs. Default: the endpoint and `/catalog`."""
    auth: ServerAuth = NoServerAuth()
    """How the stack authenticates; secrets by reference only."""
    ca_bundle: Path | None = None
    """PEM file of additional certificate authorities, for Lakekeeper and the token endpoint."""
    allow_plain_http: bool = False
    """Whether stacks and jobs may send tokens and secrets to other machines without TLS: for trusted networks, such as
    from pods to `http://lakekeeper.platform.svc:8181`. Requests to this machine need no TLS."""
    jobs_auth: Annotated[CatalogAuth, Field(discriminator="kind")] = NoAuth()
    """How jobs and computing units authenticate; secrets by reference only. With kind client-credentials, each tenant
    needs a client of its own: `{tenant}` in `client_id` and `client_secret` is the tenant's name, or the spec has an
    `identity`."""
    jobs_subject: Annotated[str, Field(min_length=1)] | None = None
    """Subject of the tokens of tenants' clients: text with `{client_id}` or `{tenant}`, for identity providers whose
    subjects follow from either. Otherwise specs name it (`identity.subject`)."""
    identity_provider: Annotated[str, Field(pattern=r"^[a-z0-9-]+$")] = "oidc"
    """Id of the OpenID provider in Lakekeeper, with which ids of its users begin."""
    kubernetes_subject: Literal["uid", "username"] = "uid"
    """Property of ServiceAccounts that Lakekeeper knows them by (LAKEKEEPER__KUBERNETES_AUTHENTICATION_SUBJECT_SOURCE).
    Servers before 0.13.3 know the uid only."""
    trial: bool = False
    """Whether all tenants may share one client of `jobs_auth`. For trials: the catalog cannot tell them apart."""
    jobs_token_audience: TokenAudience | None = AUDIENCE
    """Audience of the Kubernetes service account tokens of jobs and computing units, with `jobs_auth` of kind
    token-file. It must be in the server's LAKEKEEPER__KUBERNETES_AUTHENTICATION_AUDIENCE. A server without that
    variable accepts only tokens of the cluster's own audience: `null` requests such tokens."""
    jobs_ca_bundle: PathOfJobs | None = None
    """Path in jobs and computing units of a PEM file with all certificate authorities, for catalog and storage."""
    jobs_truststore: PathOfJobs | None = None
    """Path of the same as PKCS 12 truststore, for Java. Required if executors run on other machines."""
    principal_arn: PrincipalArn | None = None
    """The AWS identity that the server assumes warehouses' roles with."""
    principal_has_session_tags: bool = False
    """Whether sessions of that identity have transitive session tags, as EKS Pod Identity sets them. The roles of
    warehouses then allow `sts:TagSession`."""
    bootstrap: bool = False
    """Whether stacks of this environment bootstrap the server if needed."""

    @model_validator(mode="after")
    def _secrets_need_tls(self) -> LakekeeperSettings:
        if not self.allow_plain_http:
            sent = {"auth": (self.auth, self.endpoint), "jobs_auth": (self.jobs_auth, self.catalog)}
            for name, (auth, address) in sent.items():
                token_url = getattr(auth, "token_url", None)
                for url in [address, *([token_url] if token_url else [])]:
                    if auth.kind != "none" and leaves_without_tls(url):
                        raise ValueError(
                            f"expected `https://` where `{name}` sends a token or secret; found {url}. Set"
                            " `allow_plain_http: true` where the network is trusted"
                        )
        return self

    @property
    def reference(self) -> ServerRef:
        """Address and references for a client; no secrets."""
        bundle = str(self.ca_bundle) if self.ca_bundle else None
        plain = self.allow_plain_http or None
        return ServerRef(endpoint=self.endpoint, auth=self.auth, ca_bundle=bundle, allow_plain_http=plain)

    @property
    def catalog(self) -> str:
        """Address of the catalog."""
        return self.catalog_uri or f"{self.endpoint}/catalog"


class AwsAccount(StrictModel):
    """The AWS account of buckets and roles, and the identity that makes them."""

    region: Region | None = None
    endpoint: StorageEndpoint | None = None
    """Endpoint of a sandbox instead of AWS."""
    permissions_boundary: PolicyArn | None = None
    """Managed policy that limits every role that stacks make."""
    tags: Annotated[dict[AwsTagKey, AwsTagValue], Field(max_length=20)] = {}
    """Tags of all AWS objects that stacks make, such as tags for cost allocation."""
    profile: str | None = None
    shared_credentials_file: Path | None = None

    def describe_access(self, bucket: str, region: str) -> dict[str, Any]:
        """Return the fields of `OwnBucket`: a bucket of this account, and how the stack reaches it."""
        file = self.shared_credentials_file
        fields = {
            "bucket": bucket,
            "region": region,
            "endpoint": self.endpoint.rstrip("/") if self.endpoint else None,
            "profile": self.profile,
            "shared_credentials_file": str(file) if file else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


class Environment(StrictModel):
    """Settings that tenants share. With `sandbox`, addresses and identities come from the sandbox in that folder."""

    sandbox: Path | None = None
    platform: PlatformReference | None = None
    """The platform stack whose outputs are defaults of `lakekeeper` and `kubernetes`."""
    lakekeeper: LakekeeperSettings
    aws: AwsAccount = AwsAccount()
    kubernetes: Cluster = Cluster()
    directory: DirectorySettings | None = None
    """Keycloak or Entra, whose groups `role_members` of specs name."""
    tenant_specs: TenantSpecRules = TenantSpecRules()
    drift: EnvironmentDrift = EnvironmentDrift()
    """Rules about drift in all stacks of this environment, and records of who changed what."""

    @model_validator(mode="after")
    def _secret_is_wanted(self) -> Environment:
        secret = self.kubernetes.jobs_secret
        if secret and (mistake := jobs_identity.find_mistake(self.lakekeeper.jobs_auth, secret)):
            raise ValueError(f"kubernetes.jobs_secret: {mistake}")
        return self

    @property
    def trust_paths(self) -> tuple[str | None, str | None]:
        """Paths in pods of the PEM file and the truststore with all certificate authorities."""
        mounted = self.kubernetes.ca_bundle is not None
        default = (trust.BUNDLE, trust.TRUSTSTORE) if mounted else (None, None)
        return self.lakekeeper.jobs_ca_bundle or default[0], self.lakekeeper.jobs_truststore or default[1]

    @property
    def pod_identity(self) -> PodIdentity:
        """How pods authenticate to the catalog."""
        return PodIdentity(self.kubernetes.jobs_secret, self.lakekeeper.jobs_token_audience)

    @property
    def own_references(self) -> frozenset[str]:
        """References to secrets of the environment, which no spec may name."""
        parts = (self.lakekeeper.auth, self.lakekeeper.jobs_auth)
        holders = (*parts, self.directory)
        references = {getattr(part, name, None) for part in holders for name in ("token", "client_secret", "password")}
        files = [part.path for part in parts if part.kind == "token-file"]
        if self.aws.shared_credentials_file:
            files.append(str(self.aws.shared_credentials_file))
        return frozenset(reference for reference in references if reference) | {f"file:{path}" for path in files}

    @classmethod
    def load(
        cls,
        path: Path,
        environ: Mapping[str, str] = os.environ,
        *,
        read_platform: PlatformReader | None = None,
    ) -> Environment:
        """Read environments/NAME.yaml. Relative paths in it are relative to its folder.

        Args:
            path: The file.
            environ: Environment variables.
            read_platform: Reads the outputs of the platform stack that the file may name.

        Raises:
            SpecError: With all problems.
        """
        source = str(path)
        document = _read(path, source)
        folder = path.resolve().parent
        if stack := read_platform_name(document):
            document = _with_defaults(document, platform_document(stack, read_platform))
        if sandbox := _sandbox_folder(document.get("sandbox"), folder, environ):
            defaults = _sandbox_document(sandbox)
            # Settings of the file override settings of the sandbox.
            document = _with_defaults({**document, "sandbox": str(sandbox)}, defaults)
        for keys in _PATHS:
            document = _with_anchored(document, keys, folder)
        with locate_problems(path):
            return cls.parse(document, source)

    @classmethod
    def parse(cls, document: dict[str, Any], source: str) -> Environment:
        """Return the environment of a document. Raises SpecError with all problems."""
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise SpecError(source, list_problems(error, document)) from None


def _with_defaults(document: dict[str, Any], defaults: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return a document with defaults in its sections."""
    sections = {section: {**values, **as_mapping(document.get(section))} for section, values in defaults.items()}
    return document | sections


def _sandbox_folder(setting: object, folder: Path, environ: Mapping[str, str]) -> Path | None:
    if not isinstance(setting, str):
        return None  # LAKEWRIGHT_SANDBOX never changes a production environment
    if override := environ.get(SANDBOX_VARIABLE):
        # Relative to the root, above environments/: engines run programs in other folders.
        return _anchor(folder.parent, override)
    return _anchor(folder, setting)


def is_sandbox_stopped(document: Mapping[str, Any], folder: Path, environ: Mapping[str, str]) -> bool:
    """Return whether an environment is a sandbox that is not running.

    Args:
        document: The environment's file.
        folder: Its folder.
        environ: Environment variables.
    """
    sandbox = _sandbox_folder(document.get("sandbox"), folder, environ)
    return sandbox is not None and not (sandbox / _SANDBOX_STATE).is_file()


def _anchor(folder: Path, path: str | Path) -> Path:
    return (folder / Path(path).expanduser()).resolve()


def _with_anchored(document: Mapping[str, Any], keys: Sequence[str], folder: Path) -> dict[str, Any]:
    """Return a document whose path under these keys, if it has one, is made absolute."""
    first, *inner = keys
    value = document.get(first)
    if inner and isinstance(value, Mapping):
        return {**document, first: _with_anchored(as_mapping(cast(object, value)), inner, folder)}
    if not inner and isinstance(value, str):
        return {**document, first: str(_anchor(folder, value))}
    return {**document}


def _read(path: Path, source: str) -> dict[str, Any]:
    try:
        document = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        names = sorted(file.stem for file in path.parent.glob("*.yaml"))
        message = f"there is no such environment; {path.parent} has: {join_names(names)}"
        message += suggest_name(path.stem, names)
        raise SpecError(source, [Problem("", message)]) from None
    except OSError as error:
        raise SpecError(source, [Problem("", f"cannot be read: {error.strerror}")]) from None
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(source, [make_syntax_problem(path, error)]) from None
    if not isinstance(document, dict):
        raise SpecError(
            source, [Problem("", "expected a mapping with lakekeeper, aws and kubernetes, or with sandbox")]
        )
    return cast(dict[str, Any], document)


def _sandbox_document(folder: Path) -> dict[str, Any]:
    """Return the settings of a running sandbox as an environment's document."""
    state = folder / _SANDBOX_STATE
    try:
        sandbox = json.loads(state.read_text(encoding="utf-8"))
        aws = sandbox["aws"]
        return {
            "lakekeeper": {
                "endpoint": sandbox["lakekeeper"]["endpoint"],
                "catalog_uri": sandbox["lakekeeper"]["catalog_uri"],
                "principal_arn": aws["catalog_principal_arn"],
                "bootstrap": True,
                "trial": True,
                **_sandbox_auth(sandbox.get("tokens")),
            },
            "aws": {
                "region": aws["region"],
                "endpoint": aws["endpoint"],
                "profile": "admin",
                "shared_credentials_file": sandbox["credentials_file"],
            },
            "kubernetes": {"render_to": str(folder / "rendered"), "trial": True},
            "tenant_specs": _sandbox_rules(sandbox.get("store")),
            "drift": {"audit": [{"lakekeeper_log": str(folder / AUDIT_LOG)}, {"cloudtrail": "lookup"}]},
        }
    except FileNotFoundError:
        message = f"there is no sandbox in {folder}; start a sandbox with `lakewright sandbox up --dir {folder}`"
        raise SpecError(str(state), [Problem("", message)]) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(str(state), [Problem("", f"is not the state of a sandbox ({type(error).__name__})")]) from None


def _sandbox_rules(store: Mapping[str, Any] | None) -> Mapping[str, list[str]]:
    """Return the rules for specs, which may name the sandbox's store and its keys."""
    if store is None:
        return SANDBOX_RULES
    return {
        "references": [*SANDBOX_RULES["references"], store["access_key_id"], store["secret_access_key"]],
        "endpoints": [*SANDBOX_RULES["endpoints"], store["endpoint"]],
    }


def _sandbox_auth(tokens: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return how stacks and jobs authenticate if the sandbox has an identity provider."""
    if tokens is None:
        return {}
    provider = {"kind": "client-credentials", "token_url": tokens["token_url"]}
    return {
        "auth": provider
        | {"client_id": tokens["client_id"], "client_secret": f"file:{tokens['client_secret_file']}"}
        | {"audience": tokens["audience"]},
        # A client per tenant, whose id is the subject of its tokens; `provide_client` makes its secret.
        "jobs_auth": provider
        | {"client_id": f"{tokens['jobs_client_id']}-{TENANT}"}
        | {"client_secret": f"file:{tokens['jobs_client_secret_file']}-{TENANT}"},
        "jobs_subject": "{client_id}",
    }
