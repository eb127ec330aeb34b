"""Packages that only some stacks need, by the extra of `lakewright` that installs them."""

from __future__ import annotations

_EXTRAS = {
    "pulumi_aws": ("aws", "buckets and roles on AWS"),
    "pulumi_kubernetes": ("kubernetes", "computing units, maintenance jobs and the platform"),
    "kubernetes": ("kubernetes", "calls to a Kubernetes cluster"),
    "lakewright_sandbox": ("sandbox", "the sandbox"),
    "pyspark": ("spark", "Spark jobs on this machine"),
    "pyiceberg": ("spark", "tables that are read on this machine"),
}
"""Top-level modules: the extra, and its purpose."""


def explain_missing_package(error: ModuleNotFoundError) -> str:
    """Return the message of a module that is not installed; it names the extra, if an extra has the module.

    >>> print(explain_missing_package(ModuleNotFoundError("No module named 'pulumi_aws'", name="pulumi_aws.iam")))
    `pulumi_aws` is not installed; it is needed for buckets and roles on AWS. Install it: pip install 'lakewright[aws]'
    """
    module = (error.name or "").partition(".")[0]
    if module not in _EXTRAS:
        return f"ModuleNotFoundError: {error}"
    extra, purpose = _EXTRAS[module]
    return f"`{module}` is not installed; it is needed for {purpose}. Install it: pip install 'lakewright[{extra}]'"
