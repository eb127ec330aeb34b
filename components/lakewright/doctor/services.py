"""What a tenant's environment has to answer: Lakekeeper, S3, the cluster, each with the identity that a stack has."""

# boto3 carries no types; what comes of it is cast where it is used.
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from lakewright.credentials import references as credentials
from lakewright.credentials.aws_session import aws_session
from lakewright.doctor.finding import Finding
from lakewright.doctor.token_audience import pod_tokens
from lakewright.environment.environment import AwsAccount, Cluster, Environment
from lakewright.spec.storage import S3Storage

ANSWER_IN = 5
"""Seconds that each has to answer."""


def look_at_surroundings(
    environment: Environment,
    buckets: list[str],
    stores: Sequence[S3Storage] = (),
    project_id: str | None = None,
    namespace: str | None = None,
) -> list[Finding]:
    """Every finding about what a tenant's stack needs. Reads only.

    `buckets`: those on AWS that must be reachable already. `stores`: S3-compatible ones, each with keys of its own.
    `project_id`: the tenant's project, which some servers want named in every request.
    `namespace`: the Kubernetes namespace of the tenant's pods.
    """
    return [
        lakekeeper(environment, project_id),
        *s3(environment.aws, buckets),
        *(store(each) for each in stores),
        cluster(environment.kubernetes),
        *(pod_tokens(environment, namespace) if namespace else []),
    ]


def lakekeeper(environment: Environment, project_id: str | None = None) -> Finding:
    from lakewright.lakekeeper.api.connection.client import Client  # noqa: PLC0415 - loaded only where there is something to ask
    from lakewright.lakekeeper.api.connection.errors import LakekeeperError  # noqa: PLC0415
    from lakewright.lakekeeper.api.connection.retry import RetryPolicy  # noqa: PLC0415

    named = environment.lakekeeper
    try:
        client = Client(
            named.reference.model_copy(update={"project_id": project_id}), _resolve, retry=RetryPolicy(attempts=1)
        )
        told = client.server()
    except (LakekeeperError, credentials.UnresolvedCredential) as error:
        return Finding("Lakekeeper", "missing", str(error), "start the server, or mend `lakekeeper` of the environment")
    found = f"{told.version_text} at {named.endpoint}, authorizer {told.authz_backend}"
    if told.bootstrapped or named.bootstrap:
        return Finding("Lakekeeper", "ok", found)
    mend = "bootstrap it, or set `lakekeeper.bootstrap: true` in the environment"
    return Finding("Lakekeeper", "missing", f"{found}; it is not bootstrapped", mend)


def s3(account: AwsAccount, buckets: list[str]) -> list[Finding]:
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - slow to load

    place = account.endpoint or "AWS"
    mend = "mend `aws` of the environment, or the AWS_* variables and profile of this shell"
    settings = _settings()
    try:
        session = aws_session(account.profile, account.region, account.shared_credentials_file)
        who = session.client("sts", endpoint_url=account.endpoint, config=settings).get_caller_identity()["Arn"]
    except (BotoCoreError, ClientError) as error:
        return [Finding("S3 identity", "missing", f"{place}: {error}", mend)]
    findings = [Finding("S3 identity", "ok", f"{who} at {place}")]
    client = session.client("s3", endpoint_url=account.endpoint, config=settings)
    for bucket in buckets:
        try:
            client.head_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError) as error:
            findings.append(Finding(f"bucket {bucket}", "missing", str(error), "make it, or let this identity see it"))
        else:
            findings.append(Finding(f"bucket {bucket}", "ok", "reachable"))
    return findings


def store(storage: S3Storage) -> Finding:
    """Whether an S3-compatible store answers for its bucket, asked with the keys that Lakekeeper will use."""
    import boto3  # noqa: PLC0415 - slow to load
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    subject, keys = f"bucket {storage.bucket}", storage.credential
    if any(reference.startswith("config:") for reference in (keys.access_key_id, keys.secret_access_key)):
        found = f"not asked: the keys for {storage.endpoint} are in the stack's encrypted configuration"
        return Finding(subject, "optional", found, "nothing; `up` reads them")
    try:
        client = cast(Any, boto3).client(
            "s3",
            endpoint_url=storage.endpoint,
            region_name=storage.region,
            aws_access_key_id=_resolve(keys.access_key_id),
            aws_secret_access_key=_resolve(keys.secret_access_key),
            config=_settings(s3={"addressing_style": "path" if storage.path_style else "virtual"}),
        )
        client.head_bucket(Bucket=storage.bucket)
    except credentials.UnresolvedCredential as error:
        return Finding(subject, "missing", str(error), "make the storage's `credential` readable in this shell")
    except (BotoCoreError, ClientError) as error:
        mend = "start the store, make the bucket, or mend `endpoint` and `credential` of the storage"
        return Finding(subject, "missing", f"{storage.endpoint}: {error}", mend)
    return Finding(subject, "ok", f"reachable at {storage.endpoint}")


def cluster(named: Cluster) -> Finding:
    if named.render_to:
        return Finding("Kubernetes", "ok", f"no cluster needed: manifests are written to {named.render_to}")
    import kubernetes  # noqa: PLC0415 - slow to load
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    client, config = cast(Any, kubernetes).client, cast(Any, kubernetes).config
    context = named.context or "the current context"
    try:
        api = config.new_client_from_config(context=named.context)
        version = client.VersionApi(api).get_code(_request_timeout=ANSWER_IN)
    except (config.ConfigException, client.ApiException, HTTPError, OSError) as error:
        reason = " ".join(str(error).split())
        mend = "mend the kubeconfig, or set `kubernetes.render_to` to write manifests only"
        return Finding("Kubernetes", "missing", f"{context}: {reason}", mend)
    return Finding("Kubernetes", "ok", f"{version.git_version} at {context}")


def _settings(**more: Any) -> Any:
    from botocore.config import Config  # noqa: PLC0415 - slow to load

    untyped = cast(Any, Config)
    return untyped(connect_timeout=ANSWER_IN, read_timeout=ANSWER_IN, retries={"total_max_attempts": 1}, **more)


def _resolve(reference: str) -> str:
    return credentials.resolve(reference, credentials.no_config)
