"""What a tenant's environment has to answer: Lakekeeper, S3, the cluster, each with the identity that a stack has."""

# boto3 and the Kubernetes client carry no types.
# pyright: basic

from __future__ import annotations

from lakewright import credentials
from lakewright.doctor.finding import Finding
from lakewright.environment import AwsAccount, Cluster, Environment

ANSWER_IN = 5
"""Seconds that each has to answer."""


def look_at_surroundings(environment: Environment, buckets: list[str]) -> list[Finding]:
    """Every finding about what the environment names. Reads only. `buckets`: those that must be reachable already."""
    return [lakekeeper(environment), *s3(environment.aws, buckets), cluster(environment.kubernetes)]


def lakekeeper(environment: Environment) -> Finding:
    from lakewright.lakekeeper.api.client import Client  # noqa: PLC0415 - loaded only where there is something to ask
    from lakewright.lakekeeper.api.errors import LakekeeperError  # noqa: PLC0415
    from lakewright.lakekeeper.api.retry import RetryPolicy  # noqa: PLC0415
    from lakewright.lakekeeper.api.server import ServerRef  # noqa: PLC0415

    named = environment.lakekeeper
    server = ServerRef(endpoint=named.endpoint, auth=named.auth)
    client = Client(server, _resolve, retry=RetryPolicy(attempts=1))
    try:
        told = client.server()
    except (LakekeeperError, credentials.UnresolvedCredential) as error:
        return Finding("Lakekeeper", "missing", str(error), "start the server, or mend `lakekeeper` of the environment")
    found = f"{told.version_text} at {named.endpoint}, authorizer {told.authz_backend}"
    if told.bootstrapped or named.bootstrap:
        return Finding("Lakekeeper", "ok", found)
    mend = "bootstrap it, or set `lakekeeper.bootstrap: true` in the environment"
    return Finding("Lakekeeper", "missing", f"{found}; it is not bootstrapped", mend)


def s3(account: AwsAccount, buckets: list[str]) -> list[Finding]:
    import boto3  # noqa: PLC0415 - slow to load
    from botocore.config import Config  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    place = account.endpoint or "AWS"
    mend = "mend `aws` of the environment, or the AWS_* variables and profile of this shell"
    settings = Config(connect_timeout=ANSWER_IN, read_timeout=ANSWER_IN, retries={"total_max_attempts": 1})
    try:
        session = boto3.Session(profile_name=account.profile, region_name=account.region, **_file(account))
        who = session.client("sts", endpoint_url=account.endpoint, config=settings).get_caller_identity()["Arn"]
    except (BotoCoreError, ClientError) as error:
        return [Finding("S3 identity", "missing", f"{place}: {error}", mend)]
    findings = [Finding("S3 identity", "ok", f"{who} at {place}")]
    store = session.client("s3", endpoint_url=account.endpoint, config=settings)
    for bucket in buckets:
        try:
            store.head_bucket(Bucket=bucket)
        except (BotoCoreError, ClientError) as error:
            findings.append(Finding(f"bucket {bucket}", "missing", str(error), "make it, or let this identity see it"))
        else:
            findings.append(Finding(f"bucket {bucket}", "ok", "reachable"))
    return findings


def cluster(named: Cluster) -> Finding:
    if named.render_to:
        return Finding("Kubernetes", "ok", f"no cluster needed: manifests are written to {named.render_to}")
    from kubernetes import client, config  # noqa: PLC0415 - slow to load
    from urllib3.exceptions import HTTPError  # noqa: PLC0415

    context = named.context or "the current context"
    try:
        api = config.new_client_from_config(context=named.context)
        version = client.VersionApi(api).get_code(_request_timeout=ANSWER_IN)
    except (config.ConfigException, client.ApiException, HTTPError, OSError) as error:
        reason = " ".join(str(error).split())
        mend = "mend the kubeconfig, or set `kubernetes.render_to` to write manifests only"
        return Finding("Kubernetes", "missing", f"{context}: {reason}", mend)
    return Finding("Kubernetes", "ok", f"{version.git_version} at {context}")


def _file(account: AwsAccount) -> dict[str, object]:
    if account.shared_credentials_file is None:
        return {}
    from botocore.session import Session  # noqa: PLC0415

    session = Session()
    session.set_config_variable("credentials_file", str(account.shared_credentials_file))
    return {"botocore_session": session}


def _resolve(reference: str) -> str:
    return credentials.resolve(reference, credentials.no_config)
