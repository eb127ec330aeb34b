"""The URL of an S3 backend, with the parameters that the Pulumi CLI takes.

The parameters come from gocloud.dev (blob/s3blob/s3blob.go, aws/aws.go) and the older names that the CLI translates
(pkg/backend/diy/backend.go, translateLegacyS3Params).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote, urlsplit

from lakewright_engine.model.errors import StateError

_TRUE = ("1", "t", "T", "TRUE", "true", "True")
_FALSE = ("0", "f", "F", "FALSE", "false", "False")
_CHECKSUMS = ("when_supported", "when_required")
_ENCRYPTIONS = ("AES256", "aws:fsx", "aws:kms", "aws:kms:dsse")
_TEXTS = ("region", "endpoint", "profile", "role", "kmskeyid", "ssetype", "awssdk", "rate_limiter_capacity")
_FLAGS = (
    "accelerate",
    "anonymous",
    "disableSSL",
    "disable_https",
    "dualstack",
    "fips",
    "hostname_immutable",
    "s3ForcePathStyle",
    "use_path_style",
)
_CHECKSUM_PARAMETERS = ("request_checksum_calculation", "response_checksum_validation")


@dataclass(frozen=True)
class BucketLocation:
    """A bucket, a prefix in it, and how to reach it. Empty texts mean the default of the AWS configuration."""

    bucket: str
    prefix: str = ""
    """Empty, or ends with `/`."""
    region: str = ""
    endpoint: str = ""
    profile: str = ""
    role_arn: str = ""
    encryption: str = ""
    kms_key: str = ""
    request_checksums: str = ""
    response_checksums: str = ""
    is_anonymous: bool = False
    has_path_style: bool = False
    uses_http: bool = False
    uses_dualstack: bool = False
    uses_fips: bool = False
    is_accelerated: bool = False

    @property
    def server(self) -> str:
        """The endpoint for messages."""
        return self.endpoint or os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "AWS"

    @classmethod
    def parse(cls, url: str) -> BucketLocation:
        """Parse an `s3://BUCKET[/PREFIX][?PARAMETERS]` URL.

        Raises:
            StateError: The URL has no bucket, or a parameter is unknown or invalid.
        """
        parts = urlsplit(url)
        if not parts.netloc:
            raise StateError(f"the backend URL {url} names no bucket: expected s3://BUCKET[/PREFIX]")
        parameters = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        _refuse_unknown(url, parameters)
        prefix = unquote(parts.path).lstrip("/")
        if "../" in f"{prefix}/" or any(ord(character) < 32 for character in prefix):
            raise StateError(
                f"the backend URL {url} has a prefix with `..` or control characters; choose another prefix"
            )
        flags = {name: _flag(url, name, parameters[name]) for name in _FLAGS if parameters.get(name)}
        endpoint = parameters.get("endpoint", "")
        if endpoint and "://" not in endpoint:
            endpoint = f"{'http' if flags.get('disableSSL') else 'https'}://{endpoint}"
        checksums = {name: _checksum(url, name, parameters.get(name, "")) for name in _CHECKSUM_PARAMETERS}
        request = checksums["request_checksum_calculation"]
        if endpoint and not request and not os.environ.get("AWS_REQUEST_CHECKSUM_CALCULATION"):
            request = "when_required"  # stores other than AWS may refuse checksums
        return cls(
            bucket=parts.netloc,
            prefix=f"{prefix.rstrip('/')}/" if prefix.rstrip("/") else "",
            region=parameters.get("region", ""),
            endpoint=endpoint,
            profile=parameters.get("profile", ""),
            role_arn=_role(url, parameters.get("role", "")),
            encryption=_encryption(url, parameters.get("ssetype", "")),
            kms_key=parameters.get("kmskeyid", ""),
            request_checksums=request,
            response_checksums=checksums["response_checksum_validation"],
            is_anonymous=flags.get("anonymous", False),
            has_path_style=flags.get("s3ForcePathStyle", flags.get("use_path_style", False))
            or flags.get("hostname_immutable", False),
            uses_http=flags.get("disable_https", False) or flags.get("disableSSL", False),
            uses_dualstack=flags.get("dualstack", False),
            uses_fips=flags.get("fips", False),
            is_accelerated=flags.get("accelerate", False),
        )


def _refuse_unknown(url: str, parameters: dict[str, str]) -> None:
    known_parameters = {*_TEXTS, *_FLAGS, *_CHECKSUM_PARAMETERS}
    if unknown := sorted(parameters.keys() - known_parameters):
        raise StateError(
            f"the backend URL {url} has the unknown parameter(s) {', '.join(unknown)}; known are "
            f"{', '.join(sorted(known_parameters))}"
        )


def _flag(url: str, name: str, value: str) -> bool:
    if value not in (*_TRUE, *_FALSE):
        raise StateError(f"the backend URL {url} sets {name} to {value!r}: expected true or false")
    return value in _TRUE


def _checksum(url: str, name: str, value: str) -> str:
    if value and value.lower() not in _CHECKSUMS:
        raise StateError(f"the backend URL {url} sets {name} to {value!r}: expected {' or '.join(_CHECKSUMS)}")
    return value.lower()


def _role(url: str, value: str) -> str:
    if value and not value.startswith("arn:"):
        raise StateError(f"the backend URL {url} sets role to {value!r}: expected the ARN of a role")
    return value


def _encryption(url: str, value: str) -> str:
    encryption = next((candidate for candidate in _ENCRYPTIONS if candidate.lower() == value.lower()), None)
    if value and encryption is None:
        raise StateError(f"the backend URL {url} sets ssetype to {value!r}: expected {', '.join(_ENCRYPTIONS)}")
    return encryption or ""
