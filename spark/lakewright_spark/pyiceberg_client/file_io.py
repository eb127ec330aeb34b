"""A FileIO for PyIceberg that trusts custom certificate authorities."""

from __future__ import annotations

from pyarrow.fs import FileSystem, S3FileSystem
from pyiceberg.io.pyarrow import PyArrowFileIO

CA_BUNDLE = "lakewright.ca-bundle"
"""The property with the path of a PEM file."""


class TrustingFileIO(PyArrowFileIO):
    """Trusts the authorities of a PEM file on S3. PyIceberg 0.12 has no setting for it."""

    def _initialize_s3_fs(self, netloc: str | None) -> FileSystem:
        file_system = super()._initialize_s3_fs(netloc)
        assert isinstance(file_system, S3FileSystem)
        # Pickling would carry over all settings of the file system.
        (settings,) = file_system.__reduce__()[1]
        return S3FileSystem(**{**dict(settings), "tls_ca_file_path": self.properties[CA_BUNDLE]})
