"""Pre-flight of a declared warehouse: checks of name, location and storage, with the server's dry run if available."""

from collections.abc import Callable
from typing import Any, cast

from lakewright.credentials import references as credentials
from lakewright.lakekeeper.api.connection.client import Client
from lakewright.lakekeeper.api.connection.errors import LakekeeperError
from lakewright.lakekeeper.api.connection.server import ServerRef
from lakewright.lakekeeper.api.management import warehouses
from lakewright.lakekeeper.preflight import surroundings
from lakewright.lakekeeper.preflight.places import Neighbour, name_free, overlap, read_place
from lakewright.lakekeeper.preflight.report import Check, Report, write
from lakewright.lakekeeper.provider.inputs import has_unknown, is_unknown
from lakewright.lakekeeper.provider.run_context import Reported
from lakewright.lakekeeper.storage.profiles import S3Profile, profile_request
from lakewright.lakekeeper.warehouse import storage_preflight as storage
from lakewright.lakekeeper.warehouse.model import WarehouseArgs, list_created_values

Secret = Callable[[str], str]
Body = Callable[[WarehouseArgs, Secret], dict[str, Any]]

UNKNOWN_VALUE_REASON = "known only after an `up`; then run `preview --validate` again"


def validate(
    reach: Callable[[ServerRef], Client],
    new: WarehouseArgs,
    old: WarehouseArgs | None,
    secret: Secret,
    body: Body,
    *,
    reported: Reported,
) -> None:
    """Check a declaration and write the report.

    An engine that replaces a warehouse calls this a second time, without the old inputs. Only the first call reports.

    Args:
        reach: Returns the client of a server.
        new: The declared inputs.
        old: The inputs in the state; None for a new warehouse.
        secret: Reads a secret by its reference.
        body: Returns the body of the create request.
        reported: The warehouses that this run has reported.
    """
    identity = [UNKNOWN_VALUE_REASON if has_unknown(value) else str(value) for value in (new.project_id, new.name)]
    if has_unknown(new.server) or not reported.is_first(new.server.endpoint, *identity):
        return
    try:
        checks = _checks(reach(new.server), new, old, secret, body)
    except (LakekeeperError, credentials.UnresolvedCredentialError) as error:
        checks = [Check(name="server", status="failed", reason=str(error))]
    write(Report(warehouse=identity[1], project_id=identity[0], endpoint=new.server.endpoint, checks=checks))


def _checks(client: Client, new: WarehouseArgs, old: WarehouseArgs | None, secret: Secret, body: Body) -> list[Check]:
    if has_unknown([new.project_id, new.name]) or is_unknown(new.storage) or is_unknown(new.storage.type):
        return [Check(name="name", status="skipped", reason=UNKNOWN_VALUE_REASON)]
    around = surroundings.look_around(client)
    mine = _own(around.neighbours, old)
    neighbours = [neighbour for neighbour in around.neighbours if neighbour.id != mine]
    checks = [name_free(new.name, new.project_id, neighbours, around.unseen)]
    profile = profile_request(new.storage)
    if has_unknown(profile):
        location = {key: profile.get(key) for key in ("bucket", "key-prefix", "account-name", "filesystem")}
        free = (
            [] if has_unknown(location) else [overlap(read_place(profile), new.project_id, neighbours, around.unseen)]
        )
        return [*checks, *free, Check(name="storage", status="skipped", reason=UNKNOWN_VALUE_REASON)]
    checks.append(overlap(read_place(profile), new.project_id, neighbours, around.unseen))
    if new.project_id not in around.projects:
        reason = f"project {new.project_id} does not exist yet, or this identity cannot see it: {UNKNOWN_VALUE_REASON}"
        return [*checks, Check(name="storage", status="skipped", reason=reason)]
    return [*checks, *_check_storage(client, new, mine, secret, body)]


def _check_storage(client: Client, new: WarehouseArgs, mine: str | None, secret: Secret, body: Body) -> list[Check]:
    if has_unknown(list_created_values(new)):
        return [Check(name="storage", status="skipped", reason=UNKNOWN_VALUE_REASON)]
    try:
        sent = body(new, secret)
    except credentials.UnresolvedCredentialError as unresolved:
        return [Check(name="storage", status="failed", reason=str(unresolved))]
    if mine:
        change = {key: sent[key] for key in ("storage-profile", "storage-credential") if key in sent}
        reported = warehouses.validate_storage(client, mine, change)
    else:
        reported = warehouses.validate_creation(client, new.project_id, sent)
    if reported is not None:
        return [_as_check(result) for result in reported]
    if not isinstance(new.storage, S3Profile):
        reason = f"only Lakekeeper 0.14 and newer can try storage of type `{new.storage.type}` in a dry run"
        return [Check(name="storage", status="skipped", reason=reason)]
    return storage.checks(new.storage, new.credential, secret, new=mine is None)


def _as_check(reported: warehouses.Reported) -> Check:
    error = cast(dict[str, Any], reported.get("error") or {})
    reason = str(error.get("message") or reported.get("reason") or "")
    return Check(name=f"server: {reported['name']}", status=reported["status"], reason=reason)


def _own(neighbours: list[Neighbour], old: WarehouseArgs | None) -> str | None:
    """Return the id of the existing warehouse with the name and location that the state records, or None."""
    if old is None or has_unknown([old.project_id, old.name, old.storage]):
        return None
    old_place = read_place(profile_request(old.storage))
    same = (
        neighbour for neighbour in neighbours if neighbour.project == old.project_id and neighbour.place == old_place
    )
    return next((neighbour.id for neighbour in same if neighbour.name.casefold() == old.name.casefold()), None)
