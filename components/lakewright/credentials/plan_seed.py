"""Random values of a declaration, which are equal in the preview that keeps a plan and in the update by that plan.

A provider makes such a value while it checks a declaration. Both engines set an environment variable for the processes
of providers when a plan is kept or followed.
"""

import hashlib
import hmac
import os
import secrets

SEED = "LAKEWRIGHT_PLAN_SEED"
"""Environment variable: the random seed of a plan, in hexadecimal."""


def make_random_hex(purpose: str, size: int) -> str:
    """Return random text: `size` bytes in hexadecimal.

    Args:
        purpose: Purpose of the text. One seed gives different texts for different purposes.
        size: Number of bytes, at most 32.
    """
    seed = os.environ.get(SEED)
    if not seed:
        return secrets.token_hex(size)
    return hmac.digest(seed.encode(), purpose.encode(), hashlib.sha256)[:size].hex()
