"""The condition keys that come with a request, as the policies of S3, IAM and STS may use them."""

from datetime import datetime

from lakewright_sandbox.aws import ACCOUNT_ID
from lakewright_sandbox.aws.http import HttpRequest
from lakewright_sandbox.aws.signature import Signature
from lakewright_sandbox.policies.patterns import Context

_LIST_KEYS = ("prefix", "delimiter", "max-keys")


def request_context(request: HttpRequest, signature: Signature | None, now: datetime) -> dict[str, list[str]]:
    """The global keys.

    `aws:SecureTransport` is true: the sandbox listens on loopback only, and what never leaves the machine counts as
    secure transport here, so that policies that deny plain HTTP can be used as they are.
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
    """The global keys and those of S3. A parameter that the request does not have is absent, not empty."""
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
