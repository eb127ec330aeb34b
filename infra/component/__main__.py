"""The package with the tenant's component, which Pulumi starts."""

from lakewright.tenant.package import serve_package

serve_package()
