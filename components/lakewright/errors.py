"""The exceptions of this package: one tree, whose classes are defined next to the code that raises them.

LakewrightError                     the base; exit code 1 unless noted
├── SpecError                       a spec or environment is invalid; the message lists all problems
├── UsageError                      the command line is wrong; exit code 2, as of the Pulumi CLI
├── PulumiCliError                  the Pulumi CLI failed; its exit code
├── InterruptedOperationError       an operation failed; holds the report until then, and is never printed
├── PlatformUnreadableError         the output of an environment's platform stack cannot be read; exit code 2
├── UnresolvedCredentialError       a reference to a secret cannot be resolved
│   └── UndecryptedConfigError      a value of the configuration cannot be decrypted here
├── RefusedFormatError              an engine cannot use the catalog configuration; exit code 2
├── UnknownFieldError               the spec has no such field; exit code 2
├── RetainedObjectsError            an earlier stack of this name retained objects that the spec does not adopt
├── OwnedElsewhereError             another stack has objects that this stack would create, adopt or delete
├── UnreadableMarkError             a record role's description is not a mark of this version; also ValueError
├── FleetError                      an operation on many stacks cannot start
│   ├── SelectionError              no stack matches, or a filter is malformed; exit code 2
│   └── ResumeError                 no run can be resumed; exit code 2
├── DiscoveryError                  something that exists cannot be read or declared
│   └── EmptyProjectError           a project has no warehouse
├── NotExpressibleError             the spec cannot express a value or an object that a server has
├── AuditSourceError                a source of records of changes cannot be read
├── AccountUnreachableError         a service of an AWS account does not respond
├── ReadRefusedError                AWS refused to read an object or a list
├── ClusterUnreachableError         a Kubernetes cluster does not respond
├── ListDeniedError                 a Kubernetes cluster refused a list
├── ChangeDeniedError               a Kubernetes cluster refused to create or delete an object
├── DataCheckError                  the base of errors of checks
│   └── NotEvaluatedError           a check could not be evaluated, so it neither passed nor failed
├── VerifyError                     the base of errors of `lakewright verify`
│   ├── IdentityUnavailableError    the credential of a computing unit cannot be obtained here
│   └── ProbeFailedError            a step of a probe failed, so that later steps cannot be tried
├── TexeraError                     Texera refused a registration, or does not respond
├── ReportError                     the base of the errors of the report
│   ├── ReportSourceError           a file is not the JSON of a command that the report shows; exit code 2
│   └── ReportFileError             the report cannot be written
├── DirectoryError                  a group of a directory cannot be read
│   ├── GroupNotFoundError          no group has that name
│   ├── AmbiguousGroupError         several groups have that name
│   ├── DirectoryRefusedError       the client may not read groups, or its credential is not accepted
│   └── DirectoryUnavailableError   the directory does not respond, or its response is not as expected
├── CiError                         the base of errors of `lakewright ci`
│   ├── GitError                    Git does not know a commit, or is not installed
│   ├── DocumentError               the input is not a document of `fleet preview --json` or `drift --json`
│   ├── SettingError                a variable or setting of the CI system is missing or wrong; exit code 2
│   ├── PostError                   a server refused a post
│   │   ├── ForbiddenPostError      the token has no right to it, such as that of a pull request from a fork
│   │   └── MissingTargetError      the target does not exist, or the token may not see it
│   └── PublishError                gauges or Events could not be published
├── RetryableError                  a try failed and may be repeated; converted after the last try
├── CaBundleError                   the file of `ca_bundle` cannot be used; converted to UnreachableError
├── UnusableResponseError           a body cannot be read completely; converted to an error below LakekeeperError
├── _TooOpenError                   a try to prove a role's limits failed; converted to RoleTooOpenError
└── LakekeeperError                 the base of errors of calls to Lakekeeper, and of resources
    ├── UnreachableError            no connection: refused, unknown name, TLS
    ├── ResponseTimeoutError        connected, but no response in time; the call may have been applied
    ├── UnconfirmedError            the connection was lost, or a gateway timed out; the call may have been applied
    ├── UnsupportedServerError      the server is too old for this client, or for a declared property
    │   └── GrantsUnsupportedError  its authorizer stores no grants
    ├── NotGrantableError           the server does not know the privilege or the principal
    ├── NotAuthenticatedError       401, or no token
    ├── InsecureEndpointError       a secret would be sent without TLS
    ├── BadResponseError            not a Lakekeeper response: too large, endless, or without a required key
    ├── NothingFoundError           a lookup found nothing
    ├── InvalidLookupError          the arguments of a lookup are wrong
    ├── RefusedError                any other error response; `kind` is the server's name for it
    │   ├── ForbiddenError          403, and the 401 of a known user who may not grant
    │   ├── NotFoundError           404 from the server
    │   ├── NoSuchPathError         404 from a gateway, or for a path that this server does not have
    │   ├── AlreadyExistsError      the name, id or storage location is taken
    │   ├── NotEmptyError           409: a project, warehouse or namespace is not empty
    │   ├── ProtectedError          409: the object is protected
    │   ├── BusyError               409: unfinished tasks, or a concurrent change
    │   └── ConflictError           409: a requirement of a commit does not hold; nothing was applied
    ├── HoldsTablesError            a deletion or replacement would delete tables
    ├── StillHeldError              an object outside the stack would stop `destroy` half-way
    ├── CannotCountError            tables or objects cannot be counted, so nothing is deleted
    │   └── BucketTagsDeniedError   the tags of a bucket may not be read, so its owner is not known
    ├── NotOwnedError               the object exists, and this stack neither created it nor may adopt it
    ├── MovedServerError            the endpoint is not the server that has the stack's objects
    ├── DeletedOutsideStackError    the object to change no longer exists
    ├── ReplacementRefusedError     a replacement is impossible
    ├── TargetMissingError          the object to grant on does not exist
    ├── MissingPrincipalError       the AWS identity that roles shall trust does not exist
    ├── InactiveWarehouseError      the object cannot be seen while its warehouse is inactive
    ├── EvolutionRefusedError       a change of a table would lose data or make it unreadable
    ├── BucketRefusedError          S3, KMS or the provider refused to change a bucket or key
    ├── KeyInUseError               a bucket's key would be removed while objects are encrypted with it
    ├── ArchiveRefusedError         a warehouse cannot be archived, reactivated or purged by the rules of archives
    ├── RemovalRefusedError         removing a warehouse or storage from the spec would lose data
    └── RoleTooOpenError            the role of a tenant's bucket allows more than the warehouse needs
"""

from __future__ import annotations


class LakewrightError(Exception):
    """An error that a user can read and act on. The message never holds a secret."""

    exit_code: int = 1
    """Exit code of `lakewright` if the error ends a command."""
