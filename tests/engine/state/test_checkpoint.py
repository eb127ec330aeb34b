"""Any state round-trips through a checkpoint."""

import json
from datetime import datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lakewright_engine.model.resources import (
    Asset,
    PendingOperation,
    ResourceReference,
    ResourceState,
    SecretValue,
    StackSnapshot,
    Unknown,
)
from lakewright_engine.model.signatures import ASSET, SIGNATURE
from lakewright_engine.state.checkpoint import Codec
from lakewright_engine.state.secrets import PassphraseManager

plain = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8"))
)
special = (
    st.just(Unknown())
    | st.builds(ResourceReference, st.text(), st.none() | st.text(), st.text())
    | st.builds(lambda text: Asset({SIGNATURE: ASSET, "text": text, "hash": "h"}), st.text())
)
keys = st.text(st.characters(codec="utf-8")).filter(lambda key: key != SIGNATURE)
values = st.recursive(
    plain | special,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3) | st.builds(SecretValue, inner)
    ),
    max_leaves=10,
)
properties = st.dictionaries(keys, values, max_size=4)
urns = st.uuids().map(lambda unique: f"urn:pulumi:dev::conf::t:t:T::{unique}")
resources = st.builds(
    ResourceState,
    urn=urns,
    type=st.just("t:t:T"),
    custom=st.booleans(),
    id=st.text(),
    inputs=properties,
    outputs=properties,
    dependencies=st.lists(urns, max_size=2),
    property_dependencies=st.dictionaries(st.text(), st.lists(urns, max_size=2), max_size=2),
    protect=st.booleans(),
    delete=st.booleans(),
    init_errors=st.lists(st.text(), max_size=2),
    custom_timeouts=st.dictionaries(st.sampled_from(["create", "update", "delete"]), st.floats(1, 1e6), max_size=2),
    hide_diff=st.lists(st.text(), max_size=2),
    replace_on_changes=st.lists(st.text(), max_size=2),
    replacement_trigger=values,
    extra=st.dictionaries(st.sampled_from(["newField", "snippetID"]), st.just([1]), max_size=2),
)
snapshots = st.builds(
    StackSnapshot,
    st.lists(resources, max_size=4, unique_by=lambda resource: resource.urn),
    st.lists(st.builds(PendingOperation, resources, st.sampled_from(["creating", "deleting"])), max_size=2),
)


@pytest.fixture(scope="module")
def manager() -> PassphraseManager:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "round and round")
        return PassphraseManager.create("dev")


@given(snapshot=snapshots)
@settings(deadline=None, max_examples=150)
def test_every_snapshot_round_trips(manager: PassphraseManager, snapshot: StackSnapshot) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PULUMI_CONFIG_PASSPHRASE", "round and round")
        text, version, features = Codec("dev").encode(snapshot, manager)
        assert Codec("dev").decode(json.loads(text), version, features) == snapshot


@given(snapshot=snapshots)
@settings(deadline=None, max_examples=50)
def test_unchanged_snapshot_is_written_unchanged(manager: PassphraseManager, snapshot: StackSnapshot) -> None:
    codec = Codec("dev")
    first, second = (json.loads(codec.encode(snapshot, manager)[0]) for _ in range(2))
    assert datetime.fromisoformat(first["manifest"].pop("time")) <= datetime.fromisoformat(
        second["manifest"].pop("time")
    )
    assert first == second


def test_numbers_are_written_as_by_the_cli(manager: PassphraseManager) -> None:
    inputs = {"whole": 3.0, "part": 0.5, "huge": float("inf"), "none": float("nan")}
    snapshot = StackSnapshot([ResourceState("urn:x", "t:t:T", custom=True, inputs=dict(inputs))])
    text, _, _ = Codec("dev").encode(snapshot, manager)
    written = json.loads(text)["resources"][0]["inputs"]
    assert json.dumps(written["whole"]) == "3"
    assert written["part"] == 0.5
    assert written["huge"]["value"] == "7ff0000000000000"
    back = Codec("dev").decode({"resources": json.loads(text)["resources"]}, 3, []).resources[0].inputs
    assert back["huge"] == float("inf")
    assert back["none"] != back["none"]


def test_earlier_cli_wrote_null_for_no_dependencies(manager: PassphraseManager) -> None:
    body = {"urn": "urn:x", "type": "t:t:T", "custom": True, "propertyDependencies": {"role": None, "a": ["urn:y"]}}
    snapshot = Codec("dev").decode({"resources": [body]}, 3, [])
    assert snapshot.resources[0].property_dependencies == {"role": [], "a": ["urn:y"]}
    assert Codec("dev").encode(snapshot, manager)
