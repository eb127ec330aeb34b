"""Load, at import, the descriptions of the AWS services that most stacks call.

A process that imports this module shares the descriptions with the provider processes that are forked from it. No
environment variable is read: a warm process would decline the commands whose environment differs from its own.
"""

from __future__ import annotations

from lakewright_sandbox.typed import boto

SERVICES = ("iam", "s3", "sts")

boto.load_service_models(*SERVICES)
