"""Settings of the drift check."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, model_validator

from lakewright.kubernetes.field_types import FileKey, LabelKey, ObjectName
from lakewright.kubernetes.jobs_identity import AUDIENCE
from lakewright.kubernetes.pod_placement import PodPlacement
from lakewright.names.types import NotBlank, RoleArn, ServiceUrl
from lakewright.validation.cron import Cron
from lakewright.validation.quantity import seconds_between
from lakewright.validation.strict_model import StrictModel


def _check_state_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "s3" or not parts.hostname or parts.username:
        raise ValueError("expected the `s3://BUCKET?region=REGION` of the stacks' backend, without credentials")
    return value


def _check_gateway_url(value: str) -> str:
    parts = urlsplit(value)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or port == 0:
        raise ValueError("expected the address of a pushgateway, such as `http://pushgateway.monitoring.svc:9091`")
    return value


def _check_deadline(value: str) -> str:
    parse_deadline(value)
    return value


def parse_deadline(duration: str) -> int:
    """Return the seconds of a deadline. Raises ValueError if it is out of range."""
    return seconds_between(duration, 300, 12 * 3600, "5m to 12h, such as `45m` or `2h`")


def _check_token_path(value: str) -> str:
    path = PurePosixPath(value)
    if not path.is_absolute() or ".." in path.parts or not path.name or len(path.parts) < _FEWEST_PARTS:
        raise ValueError(f"expected an absolute path in a folder that has nothing else, such as `{DEFAULT_TOKEN}`")
    if folder := next((folder for folder in _FOLDERS if path.is_relative_to(folder)), None):
        raise ValueError(f"expected a path outside of {folder}, which the image or another volume has")
    return value


def _check_variable(value: str) -> str:
    if value in _OWN_VARIABLES:
        raise ValueError("expected another variable: the check sets this variable itself")
    return value


_OWN_VARIABLES = frozenset(
    {"HOME", "KUBECONFIG", "PULUMI_BACKEND_URL", "PULUMI_CONFIG_PASSPHRASE", "PULUMI_CONFIG_PASSPHRASE_FILE"}
)
_FOLDERS = (
    *("/bin", "/dev", "/etc", "/lib", "/metrics", "/opt", "/proc", "/project", "/sbin", "/sys", "/tmp", "/usr"),  # noqa: S108
    "/var/run/secrets/kubernetes.io",
)
"""Folders of the image and of the other volumes of the pods."""
_FEWEST_PARTS = 3
DEFAULT_TOKEN = "/var/run/secrets/lakekeeper/token"  # noqa: S105 - a path
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), AfterValidator(_check_variable)]
Quantity = Annotated[str, Field(pattern=r"^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi)?$")]


class SecretKey(StrictModel):
    """A key of a Secret in the check's namespace, which another tool makes."""

    name: ObjectName
    key: FileKey


class CatalogToken(StrictModel):
    """A token of the CronJobs' ServiceAccount for the catalog, as a file.

    Environments name the file as `lakekeeper.auth` (`{kind: token, token: file:PATH}`) or as `jobs_auth`
    (`{kind: token-file, path: PATH}`). The ServiceAccount needs the rights of these identities.
    """

    path: Annotated[str, AfterValidator(_check_token_path)] = DEFAULT_TOKEN
    audience: NotBlank = AUDIENCE
    """Audience of the token, which the server must accept."""


class DriftCheckResources(StrictModel):
    """Requests and limits of the check. It needs about 1 MiB for 5 tenants."""

    cpu: Quantity = "500m"
    memory: Quantity = "512Mi"
    memory_limit: Quantity = "1Gi"


class ExpirySettings(StrictModel):
    """The job that removes what has reached its `until`."""

    schedule: Cron = "7 * * * *"
    """Cron schedule of five fields, in UTC."""


class LimitSettings(StrictModel):
    """The job that enforces limits."""

    image: NotBlank
    """Image of `lakewright` with the project's files and `lakewright-spark[jobs]`, which measures usage."""
    stop_units: bool = False
    """Whether it may enforce limits of compute: create ResourceQuotas in all namespaces of the cluster, and delete the
    quota that starts no unit. Without this, a limit of compute that is reached is reported, and not enforced."""
    schedule: Cron = "37 * * * *"
    """Cron schedule of five fields, in UTC."""


class ComputeSettings(StrictModel):
    """The job that records the hours of computing units."""

    image: NotBlank
    """Image of `lakewright` with the project's files and `lakewright-spark[jobs]`, which writes the hours."""
    schedule: Cron = "*/15 * * * *"
    """Cron schedule of five fields, in UTC. Pods that start and end between two runs are not counted."""


class DriftCheckSettings(StrictModel):
    """The check: its image, the locations of states and secrets, and the targets of results."""

    image: NotBlank
    """Image of `lakewright` with the project's files, by digest; see `docs/guides/drift-in-kubernetes.md`."""
    schedule: Cron = "17 3 * * *"
    """Cron schedule of five fields, in UTC. A run that is due while another is in progress starts when that run ends,
    or is skipped if that takes more than an hour."""
    deadline: Annotated[str, AfterValidator(_check_deadline)] = "1h"
    """Time after which a run is stopped."""
    state: Annotated[str, AfterValidator(_check_state_url)]
    """Backend of the tenants' stacks: `s3://BUCKET?region=REGION`."""
    passphrase: SecretKey
    """Secret with the passphrase of the stacks. The pod has it as a file."""
    stacks: list[NotBlank] = []
    """Patterns of stacks to check. Default: all."""
    expiry: ExpirySettings | None = None
    """A second CronJob runs `lakewright expire` with the check's identity. The identity of `lakekeeper.auth` then must
    be allowed to revoke grants. Default: `up` alone removes what has ended."""
    limits: LimitSettings | None = None
    """A further CronJob runs `lakewright enforce-limits` with the check's identity, which then must be allowed to grant
    and revoke grants and to create roles. It measures usage by `jobs_auth` of the environments, so the pod needs the
    secret or the token (`catalog_token`) that `jobs_auth` names. Default: no limit is enforced."""
    compute: ComputeSettings | None = None
    """A further CronJob runs `lakewright record-compute` with the check's identity, which then may read pods. The
    identity of `lakekeeper.auth` must be allowed to list roles and to load the tables of archived warehouses. Rows are
    written by `jobs_auth` of the environments, as `limits` measures. Default: no hours are recorded."""
    role_arn: RoleArn | None = None
    """IAM role that may read the states and the tenants' objects, and nothing else."""
    identity: Literal["irsa", "pod-identity"] = "irsa"
    """`irsa` annotates the ServiceAccount; `pod-identity` needs an association in EKS and no annotation."""
    variables: dict[VariableName, str] = {}
    """Other environment variables, such as AWS_REGION; no secrets."""
    secret_variables: dict[VariableName, SecretKey] = {}
    """Environment variables from Secrets, such as the variable that `lakekeeper.auth` of the environment names."""
    catalog_token: CatalogToken | None = None
    """Token of the CronJobs' ServiceAccount as a file. `limits` and `compute` need it where `jobs_auth` of an
    environment has the kind `token-file`. Default: the pods have no such file."""
    contexts: list[NotBlank] = []
    """Names of this cluster in the tenants' states: `kubernetes.context` of their environments."""
    read_secrets: bool = False
    """Whether the check may read Secrets of all namespaces, to compare the tokens of Spark Connect."""
    events: bool = True
    """Whether drift becomes Events on the tenants' namespaces."""
    pushgateway: Annotated[str, AfterValidator(_check_gateway_url)] | None = None
    """Prometheus pushgateway that gets the gauges."""
    textfile_claim: ObjectName | None = None
    """PersistentVolumeClaim that gets the gauges as `lakewright-drift.prom`."""
    pods: PodPlacement = PodPlacement()
    """Settings of the pods of all these CronJobs. `pod_labels` has their labels."""
    pod_labels: dict[LabelKey, str] = {}
    """Labels of the pod, for policies of other namespaces."""
    egress: list[ServiceUrl] = []
    """Further addresses that the check reaches, such as a Lakekeeper outside the cluster on another port than 443."""
    resources: DriftCheckResources = DriftCheckResources()

    @model_validator(mode="after")
    def _reports_somewhere(self) -> Self:
        if not (self.events or self.pushgateway or self.textfile_claim):
            raise ValueError("expected `events`, `pushgateway` or `textfile_claim`: otherwise no result is visible")
        return self
