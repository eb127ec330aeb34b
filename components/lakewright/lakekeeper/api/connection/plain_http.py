"""The rule that tokens and secrets leave this machine by TLS alone, unless a server's settings allow plain HTTP."""

from lakewright.lakekeeper.api.connection.errors import InsecureEndpointError
from lakewright.lakekeeper.api.connection.server import ClientCredentialsAuth, NoAuth, ServerRef
from lakewright.names.host_kinds import leaves_without_tls


def require_tls(server: ServerRef) -> None:
    """Raise InsecureEndpointError if a token or secret would be sent without TLS to another machine."""
    if server.allow_plain_http:
        return
    for what, url in _confidential(server):
        if leaves_without_tls(url):
            raise InsecureEndpointError(
                f"{what} would be sent to {url} without TLS. Use `https://`, or set `allow_plain_http: true` in the"
                " server's settings (`lakekeeper` of the environment) where the network is trusted."
            )


def as_recorded(server: ServerRef) -> ServerRef:
    """Return a server of the state, which may be used as it was.

    State of versions before `allow_plain_http` does not have it, and `destroy` and `refresh` read the state alone. A
    declaration is checked before it comes into the state.
    """
    if server.allow_plain_http is not None or not any(leaves_without_tls(url) for _, url in _confidential(server)):
        return server
    return server.model_copy(update={"allow_plain_http": True})


def _confidential(server: ServerRef) -> list[tuple[str, str]]:
    """Return the secrets in a server's requests, and the URL that each is sent to."""
    if isinstance(server.auth, NoAuth):
        return []
    sent = [("a bearer token", server.endpoint)]
    if isinstance(server.auth, ClientCredentialsAuth):
        sent.append(("a client's secret", server.auth.token_url))
    return sent
