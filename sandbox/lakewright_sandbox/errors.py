"""The exceptions of the sandbox: one tree. Errors of a part are defined in the part, all others here.

SandboxError                     the base; the command line prints the message
├── CredentialsFileError         the credentials file exists but cannot be used
├── SandboxStateError            sandbox.json cannot be read
├── SandboxMissingError          there is no sandbox in that directory
├── SandboxOptionsError          the requested options contradict each other
├── ProcessFailedError           a process of the sandbox did not start or stop
├── SandboxProviderError         a message for the user of a stack
│   ├── UnsupportedError         only the real provider supports it; names the plugin to install
│   ├── NotASandboxError         the configured endpoint is not a running sandbox
│   ├── NotConfiguredError       a call came before Configure on its connection
│   ├── AwsCallError             AWS responded with an error code
│   ├── MaybeCreatedError        a create ended without a response: the object may exist
│   ├── RefusedByClusterError    the Kubernetes API refused a call
│   └── _StillThereError         a deleted object still exists; converted after the last try
├── AwsError                     an error response of the emulated AWS
│   └── AwsAccessDeniedError     code AccessDenied
├── AbsentVariableError          a policy's pattern has a variable that the request lacks; it matches nothing
├── MalformedPolicyError         a document is not a policy; also ValueError
├── UnknownOperatorError         a policy has an unknown condition operator; also ValueError
├── ApiError                     an error response in Lakekeeper's format
│   ├── RequestRejectedError     the framework refused the request before the API saw it
│   ├── StorageError             S3 refused a call or could not be reached
│   └── RoleRefusedError         STS refused to assume a role
├── ChangedMeanwhileError        another commit was faster
├── EnvironmentRefusedError      variables of a released server that the stand-in refuses
├── MissingServiceAccountError   no pod with a ServiceAccount, so no TokenReviews
├── ProviderUnreachableError     an OpenID provider does not respond, or not as the standard says
├── DatabaseNotReadyError        the database does not respond, or another release migrated it
├── EventBrokerError             the broker of change events cannot be reached
├── NoKeysError                  no identity signs a request; also BotoCoreError, as of any failed call
├── ApplyConflictError           an apply would change fields that others own
├── ApiStatusError               an error response of the emulated Kubernetes API
└── TokenRequestError            an OAuth2 error response of the identity provider
"""

from __future__ import annotations


class SandboxError(Exception):
    """Base of the sandbox's errors. The message names the problem and what to do."""


class CredentialsFileError(SandboxError):
    """The credentials file exists but lacks a profile or a key."""


class SandboxStateError(SandboxError):
    """The sandbox's state file cannot be read."""


class SandboxMissingError(SandboxError):
    """There is no sandbox in the directory."""


class SandboxOptionsError(SandboxError):
    """The requested options contradict each other."""


class ProcessFailedError(SandboxError):
    """A process of the sandbox ended, did not become healthy in time, or did not stop."""
