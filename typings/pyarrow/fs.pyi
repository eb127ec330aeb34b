"""Types of the part of pyarrow.fs that this repository uses."""

from enum import Enum
from typing import Any

class FileType(Enum):
    NotFound = 0
    Unknown = 1
    File = 2
    Directory = 3

class FileInfo:
    @property
    def base_name(self) -> str: ...
    @property
    def type(self) -> FileType: ...

class FileSelector:
    def __init__(self, base_dir: str, allow_not_found: bool = False, recursive: bool = False) -> None: ...

class FileSystem:
    def get_file_info(self, selector: FileSelector) -> list[FileInfo]: ...

class S3FileSystem(FileSystem):
    def __init__(self, **settings: Any) -> None: ...
    def __reduce__(self) -> tuple[Any, tuple[dict[str, Any]]]: ...
