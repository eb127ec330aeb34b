"""Require TLS for tokens and secrets that leave this machine, unless a server's settings allow plain HTTP."""

from lakewright.lakekeeper.api.connection.errors import InsecureEndpointError
from lakewright.lakekeeper.api.connection.server import NoServerAuth, ServerClientCredentialsAuth, ServerRef
from lakewright.names.host_kinds import leaves_without_tls


def require_tls(server: ServerRef) -> None:
    """Check that tokens and secrets are sent to other machines by TLS only.

    Raises:
        InsecureEndpointError: A token or secret would be sent without TLS.
    """
    if server.allow_plain_http:
        return
    for subject, url in _confidential(server):
        if leaves_without_tls(url):
            raise InsecureEndpointError(
                f"{subject} would be sent to {url} without TLS. Use `https://`, or set `allow_plain_http: true` in the"
                " server's settings (`lakekeeper` of the environment) where the network is trusted."
            )


def as_recorded(server: ServerRef) -> ServerRef:
    """Return a server of the state, with plain HTTP allowed.

    State of versions before `allow_plain_http` does not have it, and `destroy` and `refresh` read the state only.
    Declarations are checked before they are stored in the state.
    """
    if server.allow_plain_http is not None or not any(leaves_without_tls(url) for _, url in _confidential(server)):
        return server
    return server.model_copy(update={"allow_plain_http": True})


def _confidential(server: ServerRef) -> list[tuple[str, str]]:
    """Return the secrets in requests to a server, and the URL that each is sent to."""
    if isinstance(server.auth, NoServerAuth):
        return []
    sent = [("a bearer token", server.endpoint)]
    if isinstance(server.auth, ServerClientCredentialsAuth):
        sent.append(("a client's secret", server.auth.token_url))
    return sent
