from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

def writer(
    file: IO[bytes],
    schema: Mapping[str, Any],
    records: Iterable[Mapping[str, Any]],
    /,
    *,
    codec: str = "null",
    metadata: Mapping[str, str] | None = None,
) -> None: ...

class reader:  # noqa: N801 - the library's name
    def __init__(self, file: IO[bytes], /) -> None: ...
    @property
    def metadata(self) -> Mapping[str, str]: ...
    def __iter__(self) -> Iterator[dict[str, Any]]: ...
