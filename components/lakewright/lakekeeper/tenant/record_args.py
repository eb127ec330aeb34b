"""Inputs of a tenant's record."""

from typing import Annotated

from lakewright.lakekeeper.buckets.existing_bucket import ExistingBucket
from lakewright.lakekeeper.buckets.store_preflight import RecordedStore
from lakewright.lakekeeper.provider.inputs import CreateOnly, ResourceInputs, StateOnly
from lakewright.lakekeeper.tenant.tenant_history import KeptData, RecordedBucket, RecordedWarehouse


class TenantRecordArgs(ResourceInputs):
    """The warehouses and buckets of a tenant."""

    tenant: Annotated[str, StateOnly()]
    """Name of the tenant."""
    project_id: Annotated[str | None, StateOnly()] = None
    """Id of the tenant's project; None if it is the tenant's name."""
    shares_project: Annotated[bool, StateOnly()] = False
    """Whether the project also contains warehouses of other tenants or programs. Each warehouse then has a mark."""
    warehouses: Annotated[dict[str, RecordedWarehouse], StateOnly()]
    """Warehouses, by name."""
    buckets: Annotated[dict[str, RecordedBucket], StateOnly()] = {}
    """Buckets that the stack creates, by name of the storage."""
    stores: Annotated[dict[str, RecordedStore], StateOnly()] = {}
    """Buckets in S3-compatible stores, by name of the storage, also buckets that the stack does not create."""
    existing_buckets: Annotated[dict[str, ExistingBucket], CreateOnly()] = {}
    """Buckets on AWS that the tenant provides, by name of the storage. A new bucket is checked."""
    dropped_warehouses: Annotated[list[str], CreateOnly()] = []
    """Purged warehouses that may be removed while warehouses are added, and protected warehouses whose files may be
    purged."""
    adopting: Annotated[list[str], CreateOnly()] = []
    """Warehouses to take over if they exist."""
    principal_arn: Annotated[str | None, CreateOnly()] = None
    """AWS identity that roles of the stack trust, if it makes any."""
    kept: Annotated[list[KeptData], StateOnly()] = []
    """Data that `retain` and `protect` left of removed warehouses. Computed."""
    bucket_tag: Annotated[str | None, StateOnly()] = None
    """Value of the tag `lakewright:record` of the buckets that this stack created. Computed once."""

    @property
    def project(self) -> str:
        """Id of the tenant's project."""
        return self.project_id or self.tenant
