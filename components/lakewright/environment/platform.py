"""An environment as settings of providers. Providers are made on first use."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from lakewright.environment.environment import Environment
from lakewright.spec import Problem, SpecError, TenantSpec
from lakewright.storage.backend import StorageBackend
from lakewright.validation.moment import read_clock

if TYPE_CHECKING:
    from datetime import datetime

    import pulumi_aws
    import pulumi_kubernetes

TENANT_TAG = "lakewright:tenant"
"""Tag of AWS objects with the tenant's name."""
NO_REGION = "required: neither the storage, nor `aws:region` of the stack, nor the environment names a region"
NO_PRINCIPAL = "required where the stack makes roles: the AWS identity that Lakekeeper runs as"


def object_tags(spec: TenantSpec, environment: Environment) -> dict[str, str]:
    """Return the tags of a tenant's AWS objects, without the mark of the stack."""
    toolkit_tags = {TENANT_TAG: spec.name, "lakewright:owner": spec.owner}
    return {**spec.labels, **environment.aws.tags, **toolkit_tags}


class Platform:
    """Lakekeeper's address, the providers and the identities of one stack."""

    def __init__(
        self,
        environment: Environment,
        *,
        tenant: str,
        project_id: str | None = None,
        default_region: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """Use an environment for a tenant.

        Args:
            environment: The environment.
            tenant: Name of the tenant.
            project_id: Id of the tenant's project. Default: the tenant's name.
            default_region: Overrides the environment's region.
            now: Time with which ends of shares are compared. Default: the present time.
        """
        self.now = now or read_clock()
        self.environment = environment
        self.tenant = tenant
        self._project_id = project_id or tenant
        self._default_region = default_region or environment.aws.region
        # One provider per region.
        self.aws = cache(self._aws)

    @property
    def server(self) -> dict[str, object]:
        """The `server` of Lakekeeper resources: address, project and references; no secrets."""
        reference = self.environment.lakekeeper.reference
        return reference.model_copy(update={"project_id": self._project_id}).model_dump(exclude_none=True)

    @property
    def catalog_uri(self) -> str:
        """Address of the catalog."""
        return self.environment.lakekeeper.catalog

    @property
    def bootstraps(self) -> bool:
        """Return whether stacks bootstrap the server if needed."""
        return self.environment.lakekeeper.bootstrap

    @property
    def s3_endpoint(self) -> str | None:
        """Endpoint of a sandbox's S3; None for AWS."""
        return self.environment.aws.endpoint

    @property
    def region(self) -> str:
        """Default region of storages. Raises SpecError if there is none."""
        if self._default_region:
            return self._default_region
        raise SpecError(f"tenant {self.tenant}", [Problem("storage.*.region", NO_REGION)])

    @property
    def principal_arn(self) -> str:
        """AWS identity that assumes the warehouses' roles. Raises SpecError if there is none."""
        if arn := self.environment.lakekeeper.principal_arn:
            return arn
        raise SpecError(f"environment of tenant {self.tenant}", [Problem("lakekeeper.principal_arn", NO_PRINCIPAL)])

    def tags(self, spec: TenantSpec) -> dict[str, str]:
        """Return the tags of AWS objects: the tags of tenant and environment, and two tags of the toolkit."""
        return object_tags(spec, self.environment)

    def describe_own_bucket(self, storage: StorageBackend) -> dict[str, Any]:
        """Return the fields of `OwnBucket`: the bucket, and how the stack reaches it."""
        if (access := storage.stack_access) is not None:
            return access
        return self.environment.aws.describe_access(storage.bucket, storage.address(self).region)

    def _aws(self, region: str) -> pulumi_aws.Provider:
        import pulumi_aws  # noqa: PLC0415 - 121 MB that a stack without AWS does not install

        account = self.environment.aws
        file = account.shared_credentials_file
        endpoint = account.endpoint.rstrip("/") if account.endpoint else None
        return pulumi_aws.Provider(
            f"aws-{region}",
            region=region,
            profile=account.profile,
            shared_credentials_files=[str(file)] if file else None,
            endpoints=[{"s3": endpoint, "iam": endpoint, "sts": endpoint, "kms": endpoint}] if endpoint else None,
            s3_use_path_style=True if endpoint else None,
            skip_credentials_validation=True if endpoint else None,
            skip_metadata_api_check=True if endpoint else None,
            skip_requesting_account_id=True if endpoint else None,
        )

    def kubernetes(self) -> pulumi_kubernetes.Provider:
        """Return the provider of the cluster, or of the folder for manifests."""
        import pulumi_kubernetes  # noqa: PLC0415 - 75 MB that a stack without computing units does not install

        cluster = self.environment.kubernetes
        return pulumi_kubernetes.Provider(
            "kubernetes",
            context=None if cluster.render_to else cluster.context,
            render_yaml_to_directory=str(cluster.render_to / self.tenant) if cluster.render_to else None,
            # The stack owns every field of its manifests. Without force, a field that another manager changed
            # (`kubectl scale`) would be a conflict, and drift could not be fixed.
            enable_patch_force=None if cluster.render_to else True,
            # Replacing a ConfigMap or Secret would delete it for a moment, and pods that start then would fail.
            enable_config_map_mutable=None if cluster.render_to else True,
            enable_secret_mutable=None if cluster.render_to else True,
        )
