"""The platform program: one stack is one Lakekeeper. Its spec is in the stack's configuration, under `spec`."""

from lakewright import declare_platform

declare_platform()
