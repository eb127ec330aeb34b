"""Fuzzy search by trigrams: the distance is one minus the share of common trigrams, as in pg_trgm."""

from __future__ import annotations

import re
import struct
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from sqlalchemy import select
from starlette.responses import Response

from lakewright_sandbox.lakekeeper.authz.store import Target
from lakewright_sandbox.lakekeeper.database.lookups import find_warehouse
from lakewright_sandbox.lakekeeper.database.models import NamespaceRow, TabularRow
from lakewright_sandbox.lakekeeper.protocol.errors import ApiError
from lakewright_sandbox.lakekeeper.protocol.requests import Body, read_body
from lakewright_sandbox.lakekeeper.protocol.responses import json_response
from lakewright_sandbox.lakekeeper.server.server import Server

MAX_LENGTH = 64
MAX_RESULTS = 10

router = APIRouter(prefix="/management/v1/warehouse/{warehouse_id}")


class Search(Body):
    """A search term."""

    search: str


@router.post("/search-tabular")
def search_tabular(server: Server, warehouse_id: UUID, body: Annotated[Search, read_body(Search)]) -> Response:
    """Find tables and views by name or id."""
    if len(body.search) > MAX_LENGTH:
        raise ApiError(400, "SearchTermTooLong", f"Search terms may have {MAX_LENGTH} characters at most.")
    query = select(TabularRow, NamespaceRow.path).join(NamespaceRow, NamespaceRow.id == TabularRow.namespace_id)
    query = query.where(
        TabularRow.warehouse_id == str(warehouse_id),
        TabularRow.deleted_at.is_(None),
        TabularRow.metadata_location.is_not(None),
    )
    with server.database.read() as session:
        find_warehouse(session, str(warehouse_id), active=True)
        all_rows = session.execute(query).all()
        rows = server.authorizer.filter_visible(session, all_rows, lambda row: Target.from_tabular(row[0]))
    term_trigrams = trigrams(body.search)
    matches: list[tuple[float, TabularRow, list[str]]] = []
    for row, path in rows:
        distance = trigram_distance(term_trigrams, trigrams(".".join([*path, row.name])))
        if distance < 1 or body.search == row.id:
            matches.append((distance, row, path))
    matches.sort(key=lambda entry: entry[0])
    tabulars = [
        {
            "namespace-name": path,
            "tabular-name": row.name,
            "tabular-id": {"type": row.kind, "id": row.id},
            "distance": _single(distance),
        }
        for distance, row, path in matches[:MAX_RESULTS]
    ]
    return json_response({"tabulars": tabulars})


def trigrams(text: str) -> set[str]:
    """Return the trigrams of each word, padded with two blanks before and one after."""
    padded_words = (f"  {word} " for word in re.findall(r"[^\W_]+", text.lower()))
    return {word[start : start + 3] for word in padded_words for start in range(len(word) - 2)}


def trigram_distance(first: set[str], other: set[str]) -> float:
    """Return the distance of two texts: 0 for the same trigrams, 1 for none in common."""
    return 1 - len(first & other) / max(1, len(first | other))


def _single(number: float) -> float:
    """Return a number with the precision of the 32-bit float that the database returns."""
    return float(f"{struct.unpack('f', struct.pack('f', number))[0]:.7g}")
