"""Addresses of results and the names of their tables, as Texera writes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lakewright_spark.errors import BadAddressError
from lakewright_spark.result_uris import Execution, Port, ResultKind, ResultNamespaces, ResultUri

PORT = Port("Foo-operator-1", port=2, layer="1st-physical-op")
PORT_TEXT = "(logicalOpId=Foo-operator-1,layerName=1st-physical-op,portId=2,isInternal=false,isInput=false)"

EXAMPLES = [
    (
        Execution(7, 42).runtime_statistics(),
        "vfs:///wid/7/eid/42/runtimestatistics",
        "workflow-runtime-statistics",
        "wid_7_eid_42_runtimestatistics",
    ),
    (
        Execution(7, 42, "user-3-main").console_messages("Foo-operator-1"),
        "vfs:///wh/user-3-main/wid/7/eid/42/opid/Foo-operator-1/consolemessages",
        "operator-console-messages",
        "wid_7_eid_42_opid_Foo-operator-1_consolemessages",
    ),
    (
        Execution(7, 42, "user-3-main").result(PORT),
        f"vfs:///wh/user-3-main/wid/7/eid/42/globalportid/{PORT_TEXT}/result",
        "operator-port-result",
        f"wid_7_eid_42_globalportid_{PORT_TEXT}_result",
    ),
    (
        Execution(7, 42).state(PORT),
        f"vfs:///wid/7/eid/42/globalportid/{PORT_TEXT}/state",
        "operator-port-state",
        f"wid_7_eid_42_globalportid_{PORT_TEXT}_state",
    ),
]


@pytest.mark.parametrize(("uri", "address", "namespace", "table"), EXAMPLES)
def test_address_and_table(uri: ResultUri, address: str, namespace: str, table: str) -> None:
    assert str(uri) == address
    assert ResultUri.parse(address) == uri
    assert (ResultNamespaces().look_up(uri), uri.table) == (namespace, table)


names = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="_/?#%,\"'`<>{}|\\^[]"), min_size=1
)


@given(
    workflow=st.integers(0, 2**40),
    execution=st.integers(0, 2**40),
    warehouse=st.none() | st.just("wh_1") | names,
    operator=names,
    inner=st.booleans(),
)
def test_addresses_parse_back(
    workflow: int, execution: int, warehouse: str | None, operator: str, *, inner: bool
) -> None:
    run = Execution(workflow, execution, warehouse)
    port = Port(operator, internal=inner)
    for uri in (run.result(port), run.state(port), run.runtime_statistics(), run.console_messages(operator)):
        assert ResultUri.parse(str(uri)) == uri
        assert ResultUri.from_table_name(uri.table, warehouse) == uri
        assert uri.execution == run


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://example.org/wid/7/eid/42/runtimestatistics",
        "vfs://host/wid/7/eid/42/runtimestatistics",
        "vfs:///wid/seven/eid/42/runtimestatistics",
        "vfs:///wid/7/eid/42/opid/a/b/consolemessages",
        "vfs:///wid/7/eid/42/globalportid/(x)/other",
        "vfs:///wid/7/eid/42/runtimestatistics/",
    ],
)
def test_invalid_address_names_the_expected_form(text: str) -> None:
    with pytest.raises(BadAddressError, match=r"expected vfs:///\[wh/WAREHOUSE/\]wid/N/eid/N/.*found"):
        ResultUri.parse(text)


@pytest.mark.parametrize("operator", ["", "a_b", "a/b", "a b", "a?b", "a,b", 'say"hi"', "it's", "back`tick", "a[0]"])
def test_invalid_operator_id(operator: str) -> None:
    with pytest.raises(BadAddressError, match="operator id"):
        Execution(1, 1).console_messages(operator)
    with pytest.raises(BadAddressError, match="operator id"):
        Execution(1, 1).result(Port(operator))
    with pytest.raises(BadAddressError, match="layer"):
        Execution(1, 1).result(Port("Op-1", layer=operator))


@pytest.mark.parametrize(("uri", "address", "namespace", "table"), EXAMPLES)
def test_texera_addresses(uri: ResultUri, address: str, namespace: str, table: str) -> None:
    del address, namespace, table
    uri.check_readable()


@pytest.mark.parametrize(
    "address",
    [
        "globalportid/(logicalOpId=a,b,layerName=main,portId=0,isInternal=false,isInput=false)/result",
        "globalportid/(logicalOpId=a,layerName=main,portId=x,isInternal=false,isInput=false)/state",
        "globalportid/(x)/result",
        'opid/say"hi"/consolemessages',
    ],
)
def test_addresses_of_older_releases(address: str) -> None:
    """Clean-up must find such tables."""
    uri = ResultUri.parse(f"vfs:///wid/1/eid/1/{address}")
    assert ResultUri.from_table_name(uri.table) == uri
    with pytest.raises(BadAddressError):
        uri.check_readable()


def test_namespaces_are_configurable() -> None:
    namespaces = ResultNamespaces.from_environment({"STORAGE_ICEBERG_TABLE_RESULT_NAMESPACE": "results"})
    assert namespaces.look_up(Execution(1, 1).result(PORT)) == "results"
    assert namespaces.names[ResultKind.CONSOLE_MESSAGES] == "operator-console-messages"
