"""The tenant program: one stack is one tenant. Its spec is `lakewright:tenant` of the stack's configuration."""

from lakewright.program import declare_tenant

declare_tenant()
