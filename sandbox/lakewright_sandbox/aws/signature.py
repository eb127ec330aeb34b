"""Signature Version 4 in headers and presigned URLs: parse and verify.

Follows "Signature Version 4 for API requests" of the IAM User Guide and "Authenticating requests" of the S3 API. The
signatures of single chunks in a signed stream are not verified, the request's own is.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote

from lakewright_sandbox.aws.errors import AwsAccessDeniedError, AwsError
from lakewright_sandbox.aws.http import HttpRequest

_ALGORITHM = "AWS4-HMAC-SHA256"
_SKEW = timedelta(minutes=15)
_LONGEST_PRESIGNED = 604800
_AUTHORIZATION = re.compile(
    rf"{_ALGORITHM}\s+Credential=(?P<credential>[^,\s]+)\s*,\s*"
    r"SignedHeaders=(?P<headers>[^,\s]+)\s*,\s*Signature=(?P<signature>[0-9a-f]+)\s*"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
# Headers that do not change the request's effect; the first is part of the signed content anyway.
_NEED_NOT_BE_SIGNED = {"x-amz-content-sha256", "x-amz-date", "x-amz-user-agent"}


# HTTP clients remove the header when they send the body. Lakekeeper signs it, and S3-compatible stores accept that.
_REMOVED = {"expect": "100-continue"}


@dataclass(frozen=True)
class Signature:
    """The signature of a request, with its signer and scope."""

    access_key_id: str
    day: str
    region: str
    service: str
    signed_headers: tuple[str, ...]
    signature: str
    signed_at: datetime
    token: str | None
    valid_for: timedelta | None  # of a presigned URL

    @property
    def presigned(self) -> bool:
        """Return whether the signature is in the URL."""
        return self.valid_for is not None


def read(request: HttpRequest) -> Signature | None:
    """Return the request's signature, None for an anonymous request. Raises AwsError for a malformed signature."""
    authorization = request.headers.get("authorization")
    if authorization is None:
        return _from_query(request)
    if not authorization.startswith(_ALGORITHM):
        raise _build_unsupported_error()
    header = _AUTHORIZATION.fullmatch(authorization)
    if not header:
        raise AwsError("IncompleteSignature", "The authorization header is malformed.", 400)
    return _signature(
        header["credential"],
        header["headers"],
        header["signature"],
        date=request.headers.get("x-amz-date", ""),
        token=request.headers.get("x-amz-security-token"),
        valid_for=None,
    )


def _from_query(request: HttpRequest) -> Signature | None:
    query = request.query
    if "Signature" in query and "AWSAccessKeyId" in query:
        raise _build_unsupported_error()
    if "X-Amz-Signature" not in query:
        return None
    names = ("Credential", "SignedHeaders", "Date", "Expires", "Algorithm")
    credential, headers, date, expires, algorithm = (query.get(f"X-Amz-{name}", "") for name in names)
    seconds = int(expires) if expires.isdecimal() else 0
    if algorithm != _ALGORITHM or not 0 < seconds <= _LONGEST_PRESIGNED:
        raise AwsError(
            "AuthorizationQueryParametersError",
            "Query-string authentication version 4 requires the X-Amz-Algorithm, X-Amz-Credential, X-Amz-Signature, "
            f"X-Amz-Date, X-Amz-SignedHeaders, and X-Amz-Expires (1 to {_LONGEST_PRESIGNED}) parameters.",
        )
    return _signature(
        credential,
        headers,
        query["X-Amz-Signature"],
        date=date,
        token=query.get("X-Amz-Security-Token"),
        valid_for=timedelta(seconds=seconds),
    )


def _signature(
    credential: str, headers: str, signature: str, *, date: str, token: str | None, valid_for: timedelta | None
) -> Signature:
    scope = credential.split("/")
    if len(scope) != 5 or scope[4] != "aws4_request":
        raise AwsError("IncompleteSignature", f"Credential must have five parts and end in aws4_request: {scope[1:]}.")
    try:
        signed_at = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise AwsAccessDeniedError("AWS authentication requires a valid Date or x-amz-date header") from None
    if scope[1] != date[:8]:
        raise AwsError("SignatureDoesNotMatch", "The date in the credential scope is not that of the request.", 403)
    return Signature(
        access_key_id=scope[0],
        day=scope[1],
        region=scope[2],
        service=scope[3].lower(),
        signed_headers=tuple(headers.lower().split(";")),
        signature=signature,
        signed_at=signed_at,
        token=token,
        valid_for=valid_for,
    )


def check(request: HttpRequest, signature: Signature, secret_access_key: str, now: datetime) -> None:
    """Raise AwsError unless the holder of the secret signed this very request and the signature is current."""
    if signature.valid_for is not None:
        if now > signature.signed_at + signature.valid_for:
            raise AwsAccessDeniedError("Request has expired")
        if signature.signed_at > now + _SKEW:
            raise AwsAccessDeniedError("Request is not yet valid")
    elif abs(now - signature.signed_at) > _SKEW:
        raise AwsError(
            "RequestTimeTooSkewed", "The difference between the request time and the current time is too large.", 403
        )
    unsigned = {n for n in request.headers if n.startswith("x-amz-")} - {
        *signature.signed_headers,
        *_NEED_NOT_BE_SIGNED,
    }
    if "host" not in signature.signed_headers or (signature.service == "s3" and unsigned):
        raise AwsAccessDeniedError("There were headers present in the request which were not signed")
    payload = _payload_hash(request, signature)
    if not hmac.compare_digest(_compute_signature(request, signature, secret_access_key, payload), signature.signature):
        raise AwsError(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided. "
            "Check your key and signing method.",
            403,
        )
    if _SHA256.fullmatch(payload) and hashlib.sha256(request.body).hexdigest() != payload:
        raise AwsError(
            "XAmzContentSHA256Mismatch", "The provided 'x-amz-content-sha256' header does not match what was computed."
        )


def _payload_hash(request: HttpRequest, signature: Signature) -> str:
    if signature.service != "s3":
        return hashlib.sha256(request.body).hexdigest()
    if signature.presigned and "x-amz-content-sha256" not in signature.signed_headers:
        return "UNSIGNED-PAYLOAD"
    declared_hash = request.headers.get("x-amz-content-sha256")
    if declared_hash is None:
        raise AwsError("InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
    return declared_hash


def _compute_signature(request: HttpRequest, signature: Signature, secret_access_key: str, payload: str) -> str:
    path = quote(unquote(request.raw_path), safe="/-_.~")
    if signature.service != "s3":
        path = quote(path, safe="/-_.~")  # every service but S3 encodes twice
    pairs = (pair.partition("=") for pair in request.raw_query.split("&") if pair)
    encoded = sorted(
        (quote(unquote(name), safe="-_.~"), quote(unquote(value), safe="-_.~"))
        for name, _, value in pairs
        if not (signature.presigned and name == "X-Amz-Signature")
    )
    headers = "".join(
        f"{name}:{' '.join(request.headers.get(name, _REMOVED.get(name, '')).split())}\n"
        for name in sorted(signature.signed_headers)
    )
    canonical = "\n".join(
        (
            request.method,
            path,
            "&".join(f"{name}={value}" for name, value in encoded),
            headers,
            ";".join(sorted(signature.signed_headers)),
            payload,
        )
    )
    scope = f"{signature.day}/{signature.region}/{signature.service}/aws4_request"
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    to_sign = f"{_ALGORITHM}\n{signature.signed_at:%Y%m%dT%H%M%SZ}\n{scope}\n{digest}"
    key = b"AWS4" + secret_access_key.encode()
    for part in (signature.day, signature.region, signature.service, "aws4_request", to_sign):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key.hex()


def _build_unsupported_error() -> AwsError:
    return AwsError(
        "InvalidRequest",
        "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
    )
