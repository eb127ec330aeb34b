"""The condition keys of a request for the policies of S3, IAM and STS."""

from datetime import datetime

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.http import HttpRequest
from lakewright_sandbox.aws.signature import Signature
from lakewright_sandbox.policies.patterns import Context

_LIST_KEYS = ("prefix", "delimiter", "max-keys")


def request_context(request: HttpRequest, signature: Signature | None, now: datetime) -> dict[str, list[str]]:
    """Return the global condition keys.

    `aws:SecureTransport` is true: the sandbox listens on loopback only, so that policies that deny plain HTTP can be
    used unchanged.
    """
    context = {
        "aws:securetransport": ["true"],
        "aws:sourceip": [request.remote_address],
        "aws:currenttime": [now.strftime("%Y-%m-%dT%H:%M:%SZ")],
        "aws:epochtime": [str(int(now.timestamp()))],
        "aws:viaawsservice": ["false"],
        "aws:resourceaccount": [ACCOUNT_ID],
    }
    if signature is not None:
        context["aws:requestedregion"] = [signature.region]
    for key, header in (("aws:useragent", "user-agent"), ("aws:referer", "referer")):
        if header in request.headers:
            context[key] = [request.headers[header]]
    return context


def s3_context(request: HttpRequest, signature: Signature | None, now: datetime) -> Context:
    """Return the global condition keys and S3's. A parameter that the request lacks is absent, not empty."""
    context = request_context(request, signature, now)
    context["s3:resourceaccount"] = [ACCOUNT_ID]
    if signature is not None:
        context["s3:authtype"] = ["REST-QUERY-STRING" if signature.presigned else "REST-HEADER"]
        context["s3:signatureversion"] = ["AWS4-HMAC-SHA256"]
        age = max(now - signature.signed_at, now - now)
        context["s3:signatureage"] = [str(int(age.total_seconds() * 1000))]
    for key in _LIST_KEYS:
        if key in request.query:
            context[f"s3:{key}"] = [request.query[key]]
    if "versionId" in request.query:
        context["s3:versionid"] = [request.query["versionId"]]
    for header, value in request.headers.items():
        if header.startswith("x-amz-") and not header.startswith("x-amz-meta-"):
            context[f"s3:{header}"] = [value]
    for header in ("if-match", "if-none-match"):
        if header in request.headers:
            context[f"s3:{header}"] = [request.headers[header]]
    return context
