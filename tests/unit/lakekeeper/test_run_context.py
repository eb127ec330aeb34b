"""The context of a run: shared within the run, and with no other run."""

from __future__ import annotations

import pickle

from lakewright.lakekeeper.api.connection.privileges import GrantEntry
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.identity.role import RoleProvider
from lakewright.lakekeeper.provider import run_context
from lakewright.lakekeeper.provider.ownership_conflicts import Claim
from lakewright.lakekeeper.provider.run_context import RunContext

SERVER = ServerRef.model_validate({"endpoint": "http://127.0.0.1:9", "auth": {"kind": "none"}})


def test_next_run_keeps_connections_alone() -> None:
    """An engine starts a process for each run; tests keep the connections."""
    first = RunContext()
    client = first.clients.get(SERVER, str)
    owner = Claim("Grants", "all", frozenset({GrantEntry("select", "user", "oidc~ann")}))
    first.claims.add(("server", "object"), owner)
    first.own_objects.add("Role", "id")
    assert first.preflights.is_first("warehouse")

    second = first.next()

    assert second.clients.get(SERVER, str) is client
    assert second.claims.add(("server", "object"), Claim("Grant", "one")) is None
    assert not second.own_objects.has("Role", "id")
    assert second.preflights.is_first("warehouse")


def test_clients_of_a_run_share_lists() -> None:
    """A write by one client drops the lists that another client cached."""
    run = RunContext()
    other = SERVER.model_copy(update={"endpoint": "http://127.0.0.1:10"})
    first, second = run.clients.get(SERVER, str), run.clients.get(other, str)
    first.lists.get_cached("key", lambda: "before")

    second.lists.forget()

    assert first.lists.get_cached("key", lambda: "after") == "after"


def test_pickled_provider_finds_the_current_run() -> None:
    """The state holds pickled providers, which hold no context themselves."""
    provider = pickle.loads(pickle.dumps(RoleProvider()))

    run = run_context.start(RunContext())

    assert provider.run is run
