"""The errors of this package, and the exit code that each kind ends a command with.

LakewrightSparkError           1
├── JarsMissingError           1   the Iceberg jars are missing and could not be downloaded
├── JarsChangedError           1   a jar does not have the SHA-256 of the repository
├── DataMissingError           1   the input data is not installed or not in the given folder
├── ResultMismatchError        1   the data read back differs from the computed data
├── JobFailedError             1   Spark or the catalog failed during a job
│   └── TableUnreadableError   1   ... because a table cannot be read
├── SharedLocationError        1   another table has files under a table's location
├── ColumnRefusedError         1   a column of a result that Texera cannot read
├── RowsMovedError             1   rows of a result have moved
│   └── RowsDeletedError       1   ... because some were deleted
├── ConfigMissingError         3   no valid catalog configuration
├── WarehouseRefusedError      4   a warehouse that the run may not use
│   └── WarehouseHiddenError   4   ... or that the catalog hides from this identity
├── BadAddressError            5   text that is not the address of a result
├── NoSuchResultError          5   an address without a result
├── CatalogUnreachableError    6   the catalog does not respond, or reports an outage
├── IdentityError              7   the catalog rejects the identity, or the credential is missing or expired
│   └── AccessDeniedError      7   ... or accepts the identity, but its grants do not suffice
├── ScriptFailedError          8   the user's script ended with an error
├── DeadlineError              9   a run passed its deadline
├── RegistryError             10   the registry of executions failed or refused
├── PolicyRefusedError        11   a table policy that is invalid or does not suit the table
├── MaintenanceFailedError    12   some jobs failed, were cancelled or could not be planned
├── LeaseHeldError            13   another runner maintains the warehouse
├── LeaseLostError            13   ... or took over the lease of this runner
├── StoppedError              14   the process was asked to stop before its work was done
├── JobRefusedError           15   a job that the catalog's server does itself or does not support
├── MigrationError            16   a migration refused, or some of its tables failed
├── StandbyError              17   tables of a standby failed, or are too far behind
├── ScalingError               1   the Kubernetes API refused to scale a unit, or did not respond
└── _EndedError                1   a signal asked a run to stop; converted to JobFailedError

Exit code 2 is a usage error: an unknown command or option.
"""

from __future__ import annotations

from typing import ClassVar


class LakewrightSparkError(Exception):
    """Base of the errors that a command prints as one sentence, without a traceback."""

    exit_code: ClassVar[int] = 1


class JarsMissingError(LakewrightSparkError):
    """The Iceberg jars are not there and could not be fetched."""


class JarsChangedError(LakewrightSparkError):
    """A jar does not have the SHA-256 of the repository."""


class DataMissingError(LakewrightSparkError):
    """The input data is not installed, or not in the given folder."""


class ResultMismatchError(LakewrightSparkError):
    """The data read back differs from the computed data."""


class JobFailedError(LakewrightSparkError):
    """Spark or the catalog failed during a job."""


class TableUnreadableError(JobFailedError):
    """The metadata of one table is inconsistent. Other tables are not affected."""


class SharedLocationError(LakewrightSparkError):
    """Another table has files under the location, so files that this table does not use are no orphans."""


class ColumnRefusedError(LakewrightSparkError, ValueError):
    """A column of a result that Texera cannot read, or a value that does not fit its column."""


class RowsMovedError(LakewrightSparkError):
    """Rows of a result have moved: it was replaced, rewritten or truncated since they were read."""


class RowsDeletedError(RowsMovedError):
    """A result table has delete files, so its rows have moved."""


class ConfigMissingError(LakewrightSparkError):
    """A job was started without a valid catalog configuration."""

    exit_code = 3


class WarehouseRefusedError(LakewrightSparkError):
    """A warehouse that is not in the computing unit's list, or not writable for the submitter."""

    exit_code = 4


class WarehouseHiddenError(WarehouseRefusedError):
    """The catalog has no such warehouse, or hides it from this identity. Its response is the same."""


class BadAddressError(LakewrightSparkError, ValueError):
    """Text that is not the address of a result, or a part that no address can hold."""

    exit_code = 5


class NoSuchResultError(LakewrightSparkError):
    """An address whose table or namespace does not exist."""

    exit_code = 5


class CatalogUnreachableError(LakewrightSparkError):
    """The catalog does not respond, or responds with an error of the server."""

    exit_code = 6


class IdentityError(LakewrightSparkError, LookupError):
    """The catalog does not accept the identity, or the credential is missing, unreadable or expired."""

    exit_code = 7


class AccessDeniedError(IdentityError):
    """The catalog accepts the identity, but its grants do not allow the request."""


class ScriptFailedError(LakewrightSparkError):
    """The user's script failed."""

    exit_code = 8


class DeadlineError(LakewrightSparkError):
    """A run passed its deadline and was ended."""

    exit_code = 9


class RegistryError(LakewrightSparkError):
    """The registry of executions failed, or refused a request."""

    exit_code = 10


class PolicyRefusedError(LakewrightSparkError):
    """A table policy that is out of range, unreadable, or unsuitable for the table's columns and partitions."""

    exit_code = 11


class MaintenanceFailedError(LakewrightSparkError):
    """Some maintenance jobs failed, were cancelled or could not be planned. The other jobs ran."""

    exit_code = 12


class LeaseHeldError(LakewrightSparkError):
    """Another runner maintains the warehouse."""

    exit_code = 13


class LeaseLostError(LakewrightSparkError):
    """Another runner has, or may have, the lease of a warehouse, since it was not renewed in time."""

    exit_code = 13


class StoppedError(LakewrightSparkError):
    """The process was asked to stop before its work was done."""

    exit_code = 14


class JobRefusedError(LakewrightSparkError):
    """A maintenance job that the catalog's server does itself, or for which it signs too few requests."""

    exit_code = 15


class MigrationError(LakewrightSparkError):
    """A migration refused a step, or some of its tables could not be migrated. The other tables were."""

    exit_code = 16


class StandbyError(LakewrightSparkError):
    """Tables of a standby were not copied, are behind their source, or were not promoted. The other tables were."""

    exit_code = 17
