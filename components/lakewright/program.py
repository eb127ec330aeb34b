"""The path from which programs of earlier versions import `declare_tenant`; new programs use `lakewright.tenant`."""

from lakewright.tenant.program import declare_tenant

__all__ = ["declare_tenant"]
