"""Tenants as Pulumi stacks: storage, Lakekeeper warehouses and Spark compute.

The program of a stack calls `declare_tenant()`, which reads the spec of the stack's configuration. Specs are checked
without Pulumi, and all problems of a spec are reported at once:

>>> from lakewright import LakewrightError, parse_spec
>>> document = {
...     "version": 1,
...     "name": "acme",
...     "owner": "data@acme.example",
...     "environment": "demo",
...     "storage": {"lake": {"backend": "aws", "bucket": "acme-lake"}},
...     "warehouses": [{"name": "raw"}, {"name": "results", "deletion": "retain"}],
... }
>>> spec = parse_spec(document, source="acme.yaml")
>>> [(warehouse.name, warehouse.deletion) for warehouse in spec.warehouses]
[('raw', 'protect'), ('results', 'retain')]

>>> try:
...     parse_spec(document | {"version": 2, "owner": None}, source="acme.yaml")
... except LakewrightError as error:
...     print(error)
acme.yaml: 2 mistakes
  - version: ...
  - owner: ...

The names of `__all__` are loaded when they are used, so that importing this package takes no time.
"""

TYPE_CHECKING = False
"""True for type checkers, as in `typing`, whose import would take longer than that of this package."""

if TYPE_CHECKING:
    from lakewright.errors import LakewrightError
    from lakewright.platform_stack.program import declare_platform
    from lakewright.spec import TenantSpec, parse_spec
    from lakewright.tenant.program import declare_tenant
    from lakewright.tenant.tenant import Tenant

__all__ = ["LakewrightError", "Tenant", "TenantSpec", "declare_platform", "declare_tenant", "parse_spec"]

_MODULES = {
    "LakewrightError": "errors",
    "Tenant": "tenant.tenant",
    "TenantSpec": "spec",
    "declare_platform": "platform_stack.program",
    "declare_tenant": "tenant.program",
    "parse_spec": "spec",
}

if not TYPE_CHECKING:  # type checkers refuse unknown names only of modules without `__getattr__`

    def __getattr__(name):
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module  # noqa: PLC0415 - as few imports as possible at the start of commands

        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
