"""`<node>.facts.json`."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from whyhang.schemas.errors import FormatError
from whyhang.schemas.node_facts import (
    DiskFacts,
    GpuFacts,
    InfinibandFacts,
    KernelLine,
    MemoryFacts,
    MountFacts,
    NodeFacts,
    PressureFacts,
    ShmFacts,
    TcpFacts,
)
from whyhang.schemas.node_facts_codec import decode_node_facts, encode_node_facts

FULL = NodeFacts(
    node="gpu31",
    at="2026-05-01T10:00:00+00:00",
    gpus=(GpuFacts(index=0, uuid="GPU-1", pci="0000:1b:00.0", local_rank=0, power_watts=80.5),),
    pressure={"io": PressureFacts(some_avg10=1.5)},
    disks=(DiskFacts(name="sda", in_flight=3),),
    mounts=(MountFacts(path="/", type="ext4", source="/dev/sda"),),
    shm=ShmFacts(total_bytes=10, free_bytes=0),
    memory=MemoryFacts(total_bytes=10),
    infiniband=(InfinibandFacts(device="mlx5_0", port=1, counters={"link_downed": 2}),),
    tcp=(TcpFacts(pid=5, peer="10.0.0.2:29500", retransmits=7),),
    addresses=("10.0.0.1",),
    kernel=(KernelLine(line="oom", at=None),),
    unread={"gpus": "partly"},
)


@pytest.mark.parametrize("facts", [FULL, NodeFacts(), NodeFacts(node="a", gpus=())])
def test_what_is_written_is_read(facts: NodeFacts) -> None:
    """Nothing is lost, and no GPU is not the same as unknown GPUs."""
    assert decode_node_facts(encode_node_facts(facts)) == facts


def test_the_document_has_the_names_of_the_format() -> None:
    """Unknown values are left out, zero is not."""
    document = json.loads(encode_node_facts(FULL))
    assert document["gpus"] == [
        {"index": 0, "uuid": "GPU-1", "pci": "0000:1b:00.0", "local_rank": 0, "power_watts": 80.5}
    ]
    assert document["shm"] == {"total_bytes": 10, "free_bytes": 0}


def test_foreign_values_are_unknown() -> None:
    """Unknown keys are ignored; a value of the wrong type costs itself, its object stays."""
    facts = decode_node_facts(
        b'{"node": 5, "new": 1, "gpus": [{"index": "x", "uuid": "GPU-2"}, 7],'
        b' "disks": [{"reads": 1}, {"name": "sda", "reads": true}], "memory": [],'
        b' "pressure": {"io": {"some_avg10": 3}, "cpu": null}}'
    )
    assert facts == NodeFacts(
        gpus=(GpuFacts(uuid="GPU-2"),),
        disks=(DiskFacts(name="sda"),),
        pressure={"io": PressureFacts(some_avg10=3.0)},
    )


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    """Only FormatError is raised."""
    with pytest.raises(FormatError):
        decode_node_facts(data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["gpus", "index", "name", "io", "port"]), inner, max_size=3
        )
    ),
)


@given(st.dictionaries(st.sampled_from(NodeFacts.__slots__), VALUES, max_size=5))
def test_any_json_may_come(document: dict[str, object]) -> None:
    """An object of any values is read; what is left can be written again."""
    facts = decode_node_facts(json.dumps(document).encode())
    assert decode_node_facts(encode_node_facts(facts)) == facts
