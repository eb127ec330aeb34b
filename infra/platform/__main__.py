"""The platform program: one stack is one Lakekeeper. Its spec is in the stack's configuration, under `spec`."""

from lakewright.platform_stack.program import declare_platform

declare_platform()
