"""Trusted certificate authorities: the system's authorities, and the authorities in `ca_bundle`."""

import ssl

import httpx

from lakewright.errors import LakewrightError

NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE")
"""Reasons that versions of OpenSSL report for a response that is not TLS."""


class CaBundleError(LakewrightError):
    """The file of `ca_bundle` cannot be used."""


def trust(ca_bundle: str | None) -> ssl.SSLContext | bool:
    """Return the `verify` argument for httpx.

    Raises:
        CaBundleError: The file is not a PEM file with certificates.
    """
    if ca_bundle is None:
        return True
    context = httpx.create_ssl_context()
    try:
        context.load_verify_locations(ca_bundle)
    except (OSError, ssl.SSLError) as error:  # a file without a certificate is an SSLError
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else type(error).__name__
        raise CaBundleError(
            f"`ca_bundle` {ca_bundle} cannot be used: {reason}. It must be a PEM file with the certificate authorities"
            " of the server and of the token endpoint."
        ) from None
    return context


def hint(reason: str) -> str:
    """Return advice for a failed TLS connection; empty for other failures."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return " Its certificate is not trusted: set `ca_bundle` to its certificate authority."
    if any(word in reason for word in NO_TLS):
        return " The server does not use TLS on this port. Check whether the address must begin with `http://`."
    return ""
