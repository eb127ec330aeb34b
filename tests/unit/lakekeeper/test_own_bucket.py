"""What counts as the content of a bucket of the stack."""

import pytest
from lakewright.lakekeeper.buckets.own_bucket import ObjectVersion

TABLE = "data/executions/01a2032a-f903-7922-b811-69213f8eb6ba"


@pytest.mark.parametrize("key", [f"{TABLE}/metadata/test", f"{TABLE}/vended-test/metadata/test"])
@pytest.mark.parametrize("is_marker", [False, True])
def test_deleted_validation_objects_are_recognized(key: str, *, is_marker: bool) -> None:
    """The keys were seen on Lakekeeper 0.13.3, in a bucket of MinIO with versions."""
    assert ObjectVersion(
        key, "1", is_current=is_marker, is_marker=is_marker, size=0 if is_marker else 26
    ).is_deleted_probe


@pytest.mark.parametrize(
    "entry",
    [
        ObjectVersion(f"{TABLE}/metadata/test", "1", is_current=True, size=26),
        ObjectVersion(f"{TABLE}/metadata/test", "1", size=100_000),
        ObjectVersion(f"{TABLE}/metadata/00000.gz.metadata.json", "1", size=26),
        ObjectVersion("data/executions/metadata/test", "1", size=26),
        ObjectVersion(f"{TABLE}/metadata/test/more", "1", size=26),
    ],
)
def test_any_other_entry_is_data(entry: ObjectVersion) -> None:
    assert not entry.is_deleted_probe
