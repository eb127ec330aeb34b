"""The tenant program: one stack is one tenant. Its spec is in the stack's configuration, under `lakewright:tenant`."""

from lakewright import declare_tenant

declare_tenant()
