"""Write a tar stream byte for byte as Go's `archive/tar` does: the CLI hashes archives in that form."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable

_BLOCK = 512
_NAME_BYTES = 100
_PREFIX_BYTES = 155
_EXTENDED_HEADER = b"x"
_REGULAR = b"0"


def write_tar(members: Iterable[tuple[str, bytes]], write: Callable[[bytes], object]) -> None:
    """Write files of mode 0600 and time 0.

    Args:
        members: Names and contents, in order.
        write: Called with each piece of the stream.
    """
    for name, content in members:
        prefix, base_name = _split(name)
        if not name.isascii() or len(base_name) > _NAME_BYTES:
            _write_extended_header(name, write)
            prefix, base_name = "", _shorten(name)
        write(_header(base_name.encode(), len(content), _REGULAR, mode=0o600, prefix=prefix.encode(), devices=True))
        write(_pad(content))
    write(bytes(2 * _BLOCK))


def _split(name: str) -> tuple[str, str]:
    """Split a name that is too long for its field into folder and rest, if both then fit."""
    if len(name) <= _NAME_BYTES or not name.isascii():
        return "", name
    slash = name[: _PREFIX_BYTES + 1].rfind("/")
    if slash <= 0 or not 0 < len(name) - slash - 1 <= _NAME_BYTES:
        return "", name
    return name[:slash], name[slash + 1 :]


def _write_extended_header(name: str, write: Callable[[bytes], object]) -> None:
    record = _record("path", name)
    folder, file = posixpath.split(name)
    header_name = posixpath.join(folder, "PaxHeaders.0", file)
    write(_header(_shorten(header_name).rstrip("/").encode(), len(record), _EXTENDED_HEADER))
    write(_pad(record))


def _shorten(name: str) -> str:
    """Return the name cut to its field. A name that ends with a slash would be a folder."""
    letters = "".join(letter for letter in name if letter.isascii())
    return letters if len(letters) <= _NAME_BYTES else letters[:_NAME_BYTES].rstrip("/")


def _record(key: str, value: str) -> bytes:
    """Return `LENGTH KEY=VALUE` with a line end. The length includes its own digits."""
    body = f" {key}={value}\n".encode()
    size = len(body) + len(str(len(body)))
    if len(body) + len(str(size)) != size:
        size = len(body) + len(str(size))
    return str(size).encode() + body


def _header(name: bytes, size: int, kind: bytes, *, mode: int = 0, prefix: bytes = b"", devices: bool = False) -> bytes:
    device = b"0000000\0" if devices else bytes(8)
    fields = [
        name.ljust(_NAME_BYTES, b"\0"),
        b"%07o\0" % mode,
        b"0000000\0" * 2,  # owner and group
        b"%011o\0" % size,
        b"00000000000\0",  # time
        b" " * 8,  # the checksum is computed with blanks here
        kind,
        bytes(_NAME_BYTES),  # link name
        b"ustar\x0000",
        bytes(64),  # names of owner and group
        device * 2,
        prefix.ljust(_PREFIX_BYTES, b"\0"),
    ]
    block = b"".join(fields).ljust(_BLOCK, b"\0")
    checksum = b"%06o\0 " % sum(block)
    return block[:148] + checksum + block[156:]


def _pad(content: bytes) -> bytes:
    return content + bytes(-len(content) % _BLOCK)
