"""The keys with which Pulumi marks values that JSON and protobuf have no type for."""

from __future__ import annotations

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the key of a secret, not a secret
ASSET = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
OUTPUT = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
FLOAT = "8ad145fe-0d11-4827-bfd7-1abcbf086f5c"
"""A number that JSON cannot represent. `value` is its 64 bits in hexadecimal."""
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
