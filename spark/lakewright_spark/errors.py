"""The errors of this package, and the exit code that each kind ends a command with.

LakewrightSparkError           1
├── JarsMissingError           1   the Iceberg jars are not there and could not be fetched
├── JarsChangedError           1   a jar is another one than the repository names by its SHA-256
├── DataMissingError           1   the input data is not installed or not where it was said to be
├── ResultMismatchError        1   what was read back is not what was computed
├── JobFailedError             1   Spark or the catalog failed in the middle of a job
├── ColumnRefusedError         1   a column of a result that Texera cannot read
├── RowsMovedError             1   rows of a result have no fixed place any more
│   └── RowsDeletedError       1   ... because some were deleted
├── ConfigMissingError         3   no catalog configuration, or one that cannot be used
├── WarehouseRefusedError      4   a warehouse that is not the run's to use
│   └── WarehouseHiddenError   4   ... or that the catalog does not show to this identity
├── BadAddressError            5   text that is no address of a result
├── NoSuchResultError          5   an address at which there is nothing
├── CatalogUnreachableError    6   the catalog does not answer, or answers that it cannot
├── IdentityError              7   the catalog does not accept who asks, or the proof is missing or expired
│   └── AccessDeniedError      7   ... or knows who asks, and grants too little
├── ScriptFailedError          8   the user's script ended with an error
├── DeadlineError              9   a run passed its deadline
├── RegistryError             10   the registry of executions cannot be used, or refuses
├── PolicyRefusedError        11   a table policy that is none, or does not suit the table
├── MaintenanceFailedError    12   jobs that failed, were cancelled, or could not be decided on; the others ran
├── LeaseHeldError            13   another runner maintains the warehouse
├── LeaseLostError            13   ... since this one gave no sign for too long
├── StoppedError              14   the process was asked to stop before its work was done
└── JobRefusedError           15   a job that the catalog's server does itself, or does not make possible

2 is the command line's own: a word or an option that there is not.
"""

from __future__ import annotations

from typing import ClassVar


class LakewrightSparkError(Exception):
    """Anything that a job says in one sentence and not with a traceback."""

    exit_code: ClassVar[int] = 1


class JarsMissingError(LakewrightSparkError):
    """The Iceberg jars are not there and could not be fetched."""


class JarsChangedError(LakewrightSparkError):
    """A jar is another one than the repository names by its SHA-256."""


class DataMissingError(LakewrightSparkError):
    """The input data is not installed, or not where it was said to be."""


class ResultMismatchError(LakewrightSparkError):
    """What was read back is not what was computed."""


class JobFailedError(LakewrightSparkError):
    """Spark or the catalog failed in the middle of a job."""


class TableUnreadableError(JobFailedError):
    """The metadata of one table contradicts itself; other tables are not concerned."""


class ColumnRefusedError(LakewrightSparkError, ValueError):
    """A column of a result that Texera cannot read, or a value that does not fit its column."""


class RowsMovedError(LakewrightSparkError):
    """Rows of a result have no fixed place any more: it was replaced, rewritten or cut since they were read."""


class RowsDeletedError(RowsMovedError):
    """A result table has delete files, so its rows have no fixed place any more."""


class ConfigMissingError(LakewrightSparkError):
    """A job was started without a catalog configuration, or with one that it cannot use."""

    exit_code = 3


class WarehouseRefusedError(LakewrightSparkError):
    """A warehouse that is not in the computing unit's list, or not the submitter's to write to."""

    exit_code = 4


class WarehouseHiddenError(WarehouseRefusedError):
    """The catalog has no such warehouse, or does not show it to this identity: its answer is the same."""


class BadAddressError(LakewrightSparkError, ValueError):
    """Text that is no address of a result, or a part that no address can hold."""

    exit_code = 5


class NoSuchResultError(LakewrightSparkError):
    """An address at which there is no table, or whose namespace is not there."""

    exit_code = 5


class CatalogUnreachableError(LakewrightSparkError):
    """The catalog does not answer, or answers that it cannot."""

    exit_code = 6


class IdentityError(LakewrightSparkError, LookupError):
    """The catalog does not accept who asks, or the proof is missing, unreadable or expired."""

    exit_code = 7


class AccessDeniedError(IdentityError):
    """The catalog knows who asks, and its grants do not allow what was asked."""


class ScriptFailedError(LakewrightSparkError):
    """The user's script ended with an error of its own."""

    exit_code = 8


class DeadlineError(LakewrightSparkError):
    """A run passed its deadline and was ended."""

    exit_code = 9


class RegistryError(LakewrightSparkError):
    """The registry of executions cannot be used, or refuses what was asked."""

    exit_code = 10


class PolicyRefusedError(LakewrightSparkError):
    """A table policy that is out of range, cannot be read, or does not suit the table's columns and partitions."""

    exit_code = 11


class MaintenanceFailedError(LakewrightSparkError):
    """Some maintenance jobs failed, were cancelled, or could not be decided on; the others ran."""

    exit_code = 12


class LeaseHeldError(LakewrightSparkError):
    """Another runner maintains the warehouse."""

    exit_code = 13


class LeaseLostError(LakewrightSparkError):
    """A warehouse's lease is another runner's by now, or may be, since it could not be renewed in time."""

    exit_code = 13


class StoppedError(LakewrightSparkError):
    """The process was told to end before its work was done."""

    exit_code = 14


class JobRefusedError(LakewrightSparkError):
    """A maintenance job that the catalog's server does itself, or for which it signs too little."""

    exit_code = 15
