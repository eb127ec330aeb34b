"""Programs of earlier versions import `declare_tenant` from here; new programs import it from `lakewright`."""

from lakewright.tenant.program import declare_tenant

__all__ = ["declare_tenant"]
