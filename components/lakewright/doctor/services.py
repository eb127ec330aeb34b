"""Check the services that a tenant's stack needs: Lakekeeper, S3 and the cluster, with the stack's identities."""

# boto3 carries no types; its values are cast where they are used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from lakewright.credentials import references as credentials
from lakewright.credentials.aws_session import open_aws_session, write_certificate_file
from lakewright.doctor.cluster_dns import check_dns
from lakewright.doctor.finding import REQUEST_SECONDS, Finding
from lakewright.doctor.token_audience import check_pod_tokens
from lakewright.environment.cluster import Cluster
from lakewright.environment.environment import AwsAccount, Environment
from lakewright.errors import LakewrightError
from lakewright.storage.backend import BucketProbe

if TYPE_CHECKING:
    from lakewright.platform_stack.settings.platform import PlatformCluster


def check_services(
    environment: Environment,
    buckets: Sequence[BucketProbe] = (),
    project_id: str | None = None,
    namespace: str | None = None,
    resolve: Callable[[str], str] = credentials.resolve,
) -> list[Finding]:
    """Check the services that a tenant's stack needs. Only reads.

    Args:
        environment: The tenant's environment.
        buckets: Buckets that must exist before the stack does.
        project_id: The tenant's project; some servers require a project in every request.
        namespace: The Kubernetes namespace of the tenant's pods.
        resolve: Returns the secret of a reference.
    """
    return [
        check_lakekeeper(environment, project_id, resolve),
        *check_aws(environment.aws, [probe.bucket for probe in buckets if not probe.access_key_id]),
        *(check_bucket(probe, resolve) for probe in buckets if probe.access_key_id),
        check_cluster(environment.kubernetes),
        *check_dns(environment.kubernetes, "the environment"),
        *(check_pod_tokens(environment, namespace) if namespace else []),
    ]


def check_platform(cluster: PlatformCluster) -> list[Finding]:
    """Check the cluster of a platform stack, before Lakekeeper runs in it. Only reads."""
    return [check_cluster(cluster), *check_dns(cluster, "the platform")]


def check_lakekeeper(
    environment: Environment, project_id: str | None = None, resolve: Callable[[str], str] = credentials.resolve
) -> Finding:
    """Check that Lakekeeper responds and is bootstrapped."""
    from lakewright.http.retry import RetryPolicy  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.client import Client  # noqa: PLC0415 - slow to load

    settings = environment.lakekeeper
    reference = settings.reference.model_copy(update={"project_id": project_id})
    try:
        server = Client(reference, resolve, retry=RetryPolicy(attempts=1)).server()
    except credentials.UndecryptedConfigError as error:
        return _describe_unread("Lakekeeper", error)
    except LakewrightError as error:
        return Finding("Lakekeeper", "missing", str(error), "start the server, or fix `lakekeeper` of the environment")
    result = f"{server.version_text} at {settings.endpoint}, authorizer {server.authz_backend}"
    if server.bootstrapped or settings.bootstrap:
        return Finding("Lakekeeper", "ok", result)
    fix = "bootstrap it, or set `lakekeeper.bootstrap: true` in the environment"
    return Finding("Lakekeeper", "missing", f"{result}; it is not bootstrapped", fix)


def check_aws(account: AwsAccount, buckets: Sequence[str]) -> list[Finding]:
    """Check the AWS identity of the environment, and that it reaches the buckets."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    endpoint = account.endpoint or "AWS"
    config = make_client_config()
    try:
        session = open_aws_session(account.profile, account.region, account.shared_credentials_file)
        identity = session.client("sts", endpoint_url=account.endpoint, config=config).get_caller_identity()["Arn"]
    except (BotoCoreError, ClientError) as error:
        fix = "fix `aws` of the environment, or the AWS_* variables and profile of this shell"
        return [Finding("S3 identity", "missing", f"{endpoint}: {error}", fix)]
    findings = [Finding("S3 identity", "ok", f"{identity} at {endpoint}")]
    client = session.client("s3", endpoint_url=account.endpoint, config=config)
    for bucket in buckets:
        try:
            client.head_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError) as error:
            fix = "create it, or grant this identity access"
            findings.append(Finding(f"bucket {bucket}", "missing", str(error), fix))
        else:
            findings.append(Finding(f"bucket {bucket}", "ok", "reachable"))
    return findings


def check_bucket(probe: BucketProbe, resolve: Callable[[str], str] = credentials.resolve) -> Finding:
    """Check that an S3-compatible store has a bucket, with the keys that Lakekeeper uses."""
    import boto3  # noqa: PLC0415 - slow to load
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    subject = f"bucket {probe.bucket}"
    key_id, secret, address = str(probe.access_key_id), str(probe.secret_access_key), probe.address
    assert address is not None
    try:
        client = cast(Any, boto3).client(
            "s3",
            endpoint_url=address.endpoint,
            region_name=address.region,
            aws_access_key_id=resolve(key_id),
            aws_secret_access_key=resolve(secret),
            verify=str(write_certificate_file(probe.ca_certificates)) if probe.ca_certificates else None,
            config=make_client_config(s3={"addressing_style": "path" if address.path_style else "virtual"}),
        )
        client.head_bucket(Bucket=probe.bucket)
    except credentials.UndecryptedConfigError as error:
        return _describe_unread(subject, error)
    except credentials.UnresolvedCredentialError as error:
        return Finding(subject, "missing", str(error), "make the storage's `credential` readable in this shell")
    except (BotoCoreError, ClientError) as error:
        fix = "start the store, create the bucket, or fix `endpoint` and `credential` of the storage"
        return Finding(subject, "missing", f"{address.endpoint}: {error}", fix)
    return Finding(subject, "ok", f"reachable at {address.endpoint}")


def _describe_unread(subject: str, error: credentials.UndecryptedConfigError) -> Finding:
    """Return the finding for a service whose credential only a run of the stack can decrypt."""
    fix = "nothing, if the engine that runs the stack can decrypt it; else set its passphrase in this shell"
    return Finding(subject, "optional", f"not checked: {error}", fix)


def check_cluster(cluster: Cluster | PlatformCluster) -> Finding:
    """Check that the cluster responds, if the stack deploys to a cluster."""
    if cluster.render_to:
        return Finding("Kubernetes", "ok", f"no cluster needed: manifests are written to {cluster.render_to}")
    import kubernetes  # noqa: PLC0415 - slow to load
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    client, config = cast(Any, kubernetes).client, cast(Any, kubernetes).config
    context = cluster.context or "the current context"
    try:
        api = config.new_client_from_config(context=cluster.context)
        version = client.VersionApi(api).get_code(_request_timeout=REQUEST_SECONDS)
    except (config.ConfigException, client.ApiException, HTTPError, OSError) as error:
        reason = " ".join(str(error).split())
        fix = "fix the kubeconfig, or set `kubernetes.render_to` to write manifests only"
        return Finding("Kubernetes", "missing", f"{context}: {reason}", fix)
    return Finding("Kubernetes", "ok", f"{version.git_version} at {context}")


def make_client_config(**more: Any) -> Any:
    """Return the configuration of a boto3 client that tries once, with the timeout of these checks."""
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    untyped = cast(Any, Config)
    return untyped(
        connect_timeout=REQUEST_SECONDS, read_timeout=REQUEST_SECONDS, retries={"total_max_attempts": 1}, **more
    )
