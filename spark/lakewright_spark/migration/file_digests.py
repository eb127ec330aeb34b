"""FileDigests: size, ETag and checksums of a file in S3, by which a copy is compared with its source.

The ETag is the MD5 sum of the content only if the file was written in one part, without encryption or with keys of S3
(`AES256`). It is no digest under SSE-KMS, DSSE-KMS and SSE-C (Amazon S3 API Reference, "Object"). Checksums exist for
files that were uploaded with one; a checksum of type COMPOSITE depends on the parts of the upload.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import s3fs

_ALGORITHMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
_MD5_LENGTH = 32
_PLAIN_ENCRYPTIONS = (None, "", "AES256")


@dataclass(frozen=True)
class FileDigests:
    """Size and digests of a file, as the store knows them."""

    size: int
    """Bytes."""
    tag: str
    """The ETag, without quotes."""
    has_digest: bool = True
    """Whether the ETag follows from the content and the parts of the upload."""
    checksums: Mapping[str, str] = field(default_factory=dict[str, str])
    """Checksums of the whole content, by algorithm."""

    @property
    def md5(self) -> str | None:
        """Return the MD5 sum; None if the ETag is something else."""
        return self.tag if self.has_digest and len(self.tag) == _MD5_LENGTH else None

    def is_equal(self, other: FileDigests) -> bool | None:
        """Return whether both have the same content; None if they have no digest in common.

        >>> part, parts = FileDigests(3, "0" * 32), FileDigests(3, "1" * 32 + "-2")
        >>> part.is_equal(part), part.is_equal(FileDigests(3, "1" * 32)), part.is_equal(parts), parts.is_equal(parts)
        (True, False, None, True)
        """
        if self.size != other.size:
            return False
        if self.has_digest and other.has_digest and self.tag == other.tag:
            return True
        if self.md5 is not None and other.md5 is not None:
            return False
        for algorithm in self.checksums.keys() & other.checksums.keys():
            return self.checksums[algorithm] == other.checksums[algorithm]
        return None


def read_digests(files: s3fs.S3FileSystem, location: str, *, has_checksums: bool = False) -> FileDigests:
    """Ask the store for a file.

    Args:
        files: The store.
        location: Address of the file.
        has_checksums: Whether to ask for checksums, for which a file under SSE-KMS needs `kms:Decrypt`.

    Raises:
        OSError: The store refused.
    """
    bucket, key, _ = cast(tuple[str, str, str | None], cast(Any, files).split_path(location))
    mode = {"ChecksumMode": "ENABLED"} if has_checksums else {}
    response: dict[str, Any] = cast(Any, files).call_s3("head_object", Bucket=bucket, Key=key, **mode)
    is_whole = response.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT"
    checksums = {name: str(response[f"Checksum{name}"]) for name in _ALGORITHMS if response.get(f"Checksum{name}")}
    return FileDigests(
        size=int(response["ContentLength"]),
        tag=str(response.get("ETag", "")).strip('"'),
        has_digest=response.get("ServerSideEncryption") in _PLAIN_ENCRYPTIONS
        and not response.get("SSECustomerAlgorithm"),
        checksums={name: value for name, value in checksums.items() if is_whole and "-" not in value},
    )
