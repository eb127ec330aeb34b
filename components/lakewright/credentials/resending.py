"""Sending credentials of warehouses again although they have not changed: `up --resend-credentials`.

After Lakekeeper got a new encryption key, it cannot read the credentials that it stored before. The command line passes
the option to providers in the environment variable `LAKEWRIGHT_RESEND_CREDENTIALS`. Users of plain `pulumi up` set the
variable themselves.
"""

import os

RESEND = "LAKEWRIGHT_RESEND_CREDENTIALS"
"""Environment variable: `1` sends the credentials of all warehouses in the run again."""


def is_resend_requested() -> bool:
    """Return whether this run sends unchanged credentials again."""
    return os.environ.get(RESEND) == "1"
