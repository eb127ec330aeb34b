"""FileIOs for PyIceberg: small files in one request to S3, and custom certificate authorities."""

from __future__ import annotations

from typing import Any

from pyarrow.fs import FileSystem, S3FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

CA_BUNDLE = "lakewright.ca-bundle"
"""The property with the path of a PEM file."""


class OneRequestFileIO(PyArrowFileIO):
    """Writes a small file to S3 with one request. PyIceberg 0.12 sends the three requests of an upload in parts."""

    def _initialize_s3_fs(self, netloc: str | None) -> FileSystem:
        file_system = super()._initialize_s3_fs(netloc)
        assert isinstance(file_system, S3FileSystem)
        # Pickling would carry over all settings of the file system.
        (settings,) = file_system.__reduce__()[1]
        return S3FileSystem(**{**dict(settings), "allow_delayed_open": True, **self._build_settings()})

    def _build_settings(self) -> dict[str, Any]:
        """Return further settings of the file system."""
        return {}


class TrustingFileIO(OneRequestFileIO):
    """Trusts the authorities of a PEM file on S3, too. PyIceberg 0.12 has no setting for it."""

    def _build_settings(self) -> dict[str, Any]:
        return {"tls_ca_file_path": self.properties[CA_BUNDLE]}
