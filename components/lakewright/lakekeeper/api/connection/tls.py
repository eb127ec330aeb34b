"""Which certificate authorities are trusted: the usual ones, and those of a file besides."""

import ssl

import httpx

from lakewright.lakekeeper.api.connection.errors import UnreachableError

NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_MESSAGE")
"""How OpenSSL's versions call an answer that is no TLS."""


def trust(ca_bundle: str | None) -> ssl.SSLContext | bool:
    """What httpx takes as `verify`. Raises UnreachableError if the file is no PEM file with certificates."""
    if ca_bundle is None:
        return True
    context = httpx.create_ssl_context()
    try:
        context.load_verify_locations(ca_bundle)
    except (OSError, ssl.SSLError) as error:  # a file without a certificate is an SSLError
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else type(error).__name__
        raise UnreachableError(
            f"`ca_bundle` {ca_bundle} cannot be used: {reason}. It must be a PEM file with the certificate authorities"
            " of the server and of the token endpoint."
        ) from None
    return context


def hint(reason: str) -> str:
    """What to do about a connection that failed for this reason; empty unless it is about TLS."""
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return " Its certificate is not trusted here: name its authority by `ca_bundle`."
    if any(word in reason for word in NO_TLS):
        return " It does not speak TLS there: should the address begin with `http://`?"
    return ""
