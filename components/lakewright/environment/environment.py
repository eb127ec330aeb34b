"""What many tenants share: Lakekeeper's address and identity, AWS's, the cluster. Read from environments/NAME.yaml."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, cast

import yaml
from lakewright_spark.catalog.auth import CatalogAuth
from lakewright_spark.catalog.auth import NoAuth as NoJobAuth
from pydantic import AfterValidator, Field, ValidationError, model_validator

from lakewright.environment.tenant_spec_rules import TenantSpecRules
from lakewright.kubernetes import jobs_identity
from lakewright.kubernetes.images import TRIAL_IMAGES
from lakewright.kubernetes.jobs_identity import AUDIENCE, JobsSecret, PodIdentity
from lakewright.lakekeeper.api.connection.server import Auth, NoAuth, ServerRef
from lakewright.names.host_kinds import leaves_without_tls
from lakewright.names.types import Arn, PolicyArn, Region, ServiceUrl, StorageEndpoint
from lakewright.project_files.stack_files import mapping
from lakewright.spec.computing_unit import Runtime
from lakewright.validation.problems import Problem, SpecError, problems_of
from lakewright.validation.strict_model import StrictModel
from lakewright.validation.yaml_text import load_yaml

SANDBOX_VARIABLE = "LAKEWRIGHT_SANDBOX"
"""Names a sandbox's folder, from the project's root if it is relative. It replaces `sandbox` of files that have one."""

_PATHS = (("lakekeeper", "ca_bundle"), ("aws", "shared_credentials_file"), ("kubernetes", "render_to"))
"""Sections and their keys that are paths."""

SANDBOX_RULES: Mapping[str, list[str]] = {
    "references": ["config:", "env:"],
    "endpoints": ["http://127.0.0.1:*", "http://localhost:*"],
}
"""Rules for specs in a sandbox: they may name variables of its user, and stores on the same machine."""


def _absolute(path: str) -> str:
    # Not a path of this machine, so that neither what it is relative to nor whether it is there can be known here.
    if not PurePosixPath(path).is_absolute():
        raise ValueError(
            "expected an absolute path, as in `/etc/ssl/certs/platform.pem`, on the machines that run jobs"
        )
    return path


PathOfJobs = Annotated[str, AfterValidator(_absolute)]
TokenAudience = Annotated[str, Field(min_length=1)]


class LakekeeperServer(StrictModel):
    """The Lakekeeper that serves the tenants."""

    endpoint: ServiceUrl
    catalog_uri: ServiceUrl | None = None
    """Where jobs find the catalog. Default: the endpoint and `/catalog`."""
    auth: Auth = NoAuth()
    """How the stack proves who it is; references only."""
    ca_bundle: Path | None = None
    """A PEM file with authorities to trust besides the usual ones, for Lakekeeper and for the token endpoint."""
    allow_plain_http: bool = False
    """Whether tokens and secrets of stacks and jobs may be sent without TLS to other machines: for a network that is
    trusted, such as from pods to `http://lakekeeper.platform.svc:8181`. This machine itself needs no TLS."""
    jobs_auth: Annotated[CatalogAuth, Field(discriminator="kind")] = NoJobAuth()
    """How jobs and computing units prove who they are; references only."""
    jobs_token_audience: TokenAudience | None = AUDIENCE
    """Audience of the Kubernetes service account tokens that jobs and computing units show, with `jobs_auth` of kind
    token-file. It must be in the server's LAKEKEEPER__KUBERNETES_AUTHENTICATION_AUDIENCE. A server without that
    variable takes tokens of the cluster's own audience alone: `null` asks for those."""
    jobs_ca_bundle: PathOfJobs | None = None
    """Where jobs and computing units have a PEM file with all authorities that they trust: catalog's and storage's."""
    jobs_truststore: PathOfJobs | None = None
    """Where they have the same for Java, as a PKCS 12 truststore. Needed where executors run on other machines."""
    principal_arn: Arn | None = None
    """The AWS identity that the server assumes warehouses' roles with."""
    bootstrap: bool = False
    """Whether stacks of this environment bootstrap the server if nobody did."""

    @model_validator(mode="after")
    def _secrets_need_tls(self) -> LakekeeperServer:
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
        """What a client of it needs: address and references, no secret."""
        bundle = str(self.ca_bundle) if self.ca_bundle else None
        plain = self.allow_plain_http or None
        return ServerRef(endpoint=self.endpoint, auth=self.auth, ca_bundle=bundle, allow_plain_http=plain)

    @property
    def catalog(self) -> str:
        return self.catalog_uri or f"{self.endpoint}/catalog"


class AwsAccount(StrictModel):
    """The AWS account that buckets and roles are made in, and the identity that makes them."""

    region: Region | None = None
    endpoint: StorageEndpoint | None = None
    """A sandbox's, in place of AWS."""
    permissions_boundary: PolicyArn | None = None
    """Managed policy that limits every role that stacks make, whatever the role's own policies say."""
    profile: str | None = None
    shared_credentials_file: Path | None = None


class Cluster(StrictModel):
    """Where computing units run."""

    context: str | None = None
    """Context of the kubeconfig. Default: its current one."""
    render_to: Path | None = None
    """Write manifests into this folder, a folder per tenant, and apply nothing."""
    clients_namespace: str = "texera"
    """The namespace whose pods may connect to computing units."""
    images: dict[Runtime, str] = {}
    """Images by runtime, for units that name none. By digest, `NAME@sha256:...`, unless `trial` is set."""
    trial: bool = False
    """Whether images may be named by tag, and have defaults. For trials: a tag may name another image tomorrow."""
    maintenance_image: str | None = None
    """For the jobs of `maintenance`: with `lakewright-spark` and its jars in. Default: the image for `spark`."""

    jobs_secret: JobsSecret | None = None
    """The Kubernetes Secret, in each tenant's namespace, with what `lakekeeper.jobs_auth` refers to by env:NAME or
    file:PATH: pods get the variable, or the file."""

    def image(self, runtime: Runtime) -> str | None:
        """Return the default image of a runtime; None if there is none."""
        return self.images.get(runtime) or (TRIAL_IMAGES[runtime] if self.trial else None)


class Environment(StrictModel):
    """What tenants share. With `sandbox`, addresses and identities are those of the sandbox in that folder."""

    sandbox: Path | None = None
    lakekeeper: LakekeeperServer
    aws: AwsAccount = AwsAccount()
    kubernetes: Cluster = Cluster()
    tenant_specs: TenantSpecRules = TenantSpecRules()

    @model_validator(mode="after")
    def _secret_is_wanted(self) -> Environment:
        secret = self.kubernetes.jobs_secret
        if secret and (found := jobs_identity.mistake(self.lakekeeper.jobs_auth, secret)):
            raise ValueError(f"kubernetes.jobs_secret: {found}")
        return self

    @property
    def pod_identity(self) -> PodIdentity:
        """How pods prove to the catalog who they are."""
        return PodIdentity(self.kubernetes.jobs_secret, self.lakekeeper.jobs_token_audience)

    @property
    def own_references(self) -> frozenset[str]:
        """References to the secrets of the environment itself, which no tenant may name."""
        parts = (self.lakekeeper.auth, self.lakekeeper.jobs_auth)
        found = {getattr(part, name, None) for part in parts for name in ("token", "client_secret", "password")}
        files = [part.path for part in parts if part.kind == "token-file"]
        if self.aws.shared_credentials_file:
            files.append(str(self.aws.shared_credentials_file))
        return frozenset(reference for reference in found if reference) | {f"file:{path}" for path in files}

    @classmethod
    def load(cls, path: Path, environ: Mapping[str, str] = os.environ) -> Environment:
        """Read environments/NAME.yaml. Relative paths in it start at its folder. SpecError if it cannot be used."""
        source = str(path)
        document = _read(path, source)
        folder = path.resolve().parent
        if sandbox := _sandbox_folder(document.get("sandbox"), folder, environ):
            told = _of_sandbox(sandbox)
            # What the file says beside `sandbox` refines what the sandbox says.
            document = {**document, "sandbox": str(sandbox)} | {
                section: {**told[section], **mapping(document.get(section))} for section in told
            }
        for section, key in _PATHS:
            part = mapping(document.get(section))
            if isinstance(part.get(key), str):
                document[section] = {**part, key: str(_anchored(folder, part[key]))}
        try:
            return cls.model_validate(document)
        except ValidationError as error:
            raise SpecError(source, problems_of(error, document)) from None


def _sandbox_folder(named: object, folder: Path, environ: Mapping[str, str]) -> Path | None:
    if not isinstance(named, str):
        return None  # a production environment keeps its endpoints and identities, whatever the shell has set
    if chosen := environ.get(SANDBOX_VARIABLE):
        # The root is above environments/. The current folder would not do: an engine runs programs in their own.
        return _anchored(folder.parent, chosen)
    return _anchored(folder, named)


def _anchored(folder: Path, path: str | Path) -> Path:
    return (folder / Path(path).expanduser()).resolve()


def _read(path: Path, source: str) -> dict[str, Any]:
    try:
        document = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        there = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml"))) or "none"
        message = f"there is no such environment; {path.parent} has: {there}"
        raise SpecError(source, [Problem("", message)]) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SpecError(source, [Problem("", f"cannot be read: {' '.join(str(error).split())}")]) from None
    if not isinstance(document, dict):
        raise SpecError(
            source, [Problem("", "expected a mapping with lakekeeper, aws and kubernetes, or with sandbox")]
        )
    return cast(dict[str, Any], document)


def _of_sandbox(folder: Path) -> dict[str, Any]:
    """What a running sandbox says of itself, in an environment's words."""
    state = folder / "sandbox.json"
    try:
        told = json.loads(state.read_text(encoding="utf-8"))
        aws = told["aws"]
        return {
            "lakekeeper": {
                "endpoint": told["lakekeeper"]["endpoint"],
                "catalog_uri": told["lakekeeper"]["catalog_uri"],
                "principal_arn": aws["catalog_principal_arn"],
                "bootstrap": True,
                **_auth_of_sandbox(told.get("tokens")),
            },
            "aws": {
                "region": aws["region"],
                "endpoint": aws["endpoint"],
                "profile": "admin",
                "shared_credentials_file": told["credentials_file"],
            },
            "kubernetes": {"render_to": str(folder / "rendered"), "trial": True},
            "tenant_specs": SANDBOX_RULES,
        }
    except FileNotFoundError:
        message = f"there is no sandbox in {folder}; start one with `lakewright sandbox up --dir {folder}`"
        raise SpecError(str(state), [Problem("", message)]) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SpecError(str(state), [Problem("", f"is no sandbox's state ({type(error).__name__})")]) from None


def _auth_of_sandbox(tokens: Mapping[str, Any] | None) -> dict[str, Any]:
    """How stacks and jobs prove who they are, where the sandbox has an identity provider."""
    if tokens is None:
        return {}
    provider = {"kind": "client-credentials", "token_url": tokens["token_url"]}
    return {
        "auth": provider
        | {"client_id": tokens["client_id"], "client_secret": f"file:{tokens['client_secret_file']}"}
        | {"audience": tokens["audience"]},
        "jobs_auth": provider
        | {"client_id": tokens["jobs_client_id"], "client_secret": f"file:{tokens['jobs_client_secret_file']}"},
    }
