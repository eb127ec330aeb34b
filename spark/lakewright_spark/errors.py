"""The errors of this package.

LakewrightSparkError
├── JarsMissingError       the Iceberg jars are not there and could not be fetched
├── ConfigMissingError     a job was started without a catalog configuration
├── BadAddressError        text that is no address of a result
├── RowsDeletedError       a result table whose rows have no fixed place any more
├── DataMissingError       the input data is not installed or not where it was said to be
├── ResultMismatchError    what was read back is not what was computed
└── JobFailedError         Spark or the catalog failed in the middle of a job
"""

from __future__ import annotations


class LakewrightSparkError(Exception):
    """Anything that a job says in one sentence and not with a traceback."""


class JarsMissingError(LakewrightSparkError):
    """The Iceberg jars are not there and could not be fetched."""


class ConfigMissingError(LakewrightSparkError):
    """A job was started without a catalog configuration, or with one that holds no such warehouse."""


class BadAddressError(LakewrightSparkError, ValueError):
    """Text that is no address of a result, or a part that no address can hold."""


class RowsDeletedError(LakewrightSparkError):
    """A result table has delete files, so its rows have no fixed place any more."""


class DataMissingError(LakewrightSparkError):
    """The input data is not installed, or not where it was said to be."""


class ResultMismatchError(LakewrightSparkError):
    """What was read back is not what was computed."""


class JobFailedError(LakewrightSparkError):
    """Spark or the catalog failed in the middle of a job."""
