"""AWS's partitions: which one a region is in, and what ARNs and host names look like there.

Source: AWS, "AWS service endpoints" and the partitions of botocore's endpoint data.
"""

from __future__ import annotations

from collections.abc import Mapping

_PREFIXES: Mapping[str, str] = {
    "cn-": "aws-cn",
    "us-gov-": "aws-us-gov",
    "us-iso-": "aws-iso",
    "us-isob-": "aws-iso-b",
    "eu-isoe-": "aws-iso-e",
    "us-isof-": "aws-iso-f",
    "eusc-": "aws-eusc",
}
_SUFFIXES: Mapping[str, str] = {
    "aws": "amazonaws.com",
    "aws-cn": "amazonaws.com.cn",
    "aws-us-gov": "amazonaws.com",
    "aws-iso": "c2s.ic.gov",
    "aws-iso-b": "sc2s.sgov.gov",
    "aws-iso-e": "cloud.adc-e.uk",
    "aws-iso-f": "csp.hci.ic.gov",
    "aws-eusc": "amazonaws.eu",
}


def find_partition(region: str) -> str:
    """Return the partition of a region: `aws`, `aws-cn`, `aws-us-gov` and so on."""
    return next((partition for prefix, partition in _PREFIXES.items() if region.startswith(prefix)), "aws")


def service_host(service: str, region: str) -> str:
    """Return the host of a service in a region: `s3.us-west-2.amazonaws.com`."""
    return f"{service}.{region}.{_SUFFIXES[find_partition(region)]}"


def bucket_arn(bucket: str, region: str) -> str:
    """Return the ARN of a bucket; it names the partition and not the region."""
    return f"arn:{find_partition(region)}:s3:::{bucket}"
