"""Where a job's topology is known from, and what is said where sources contradict each other."""

from __future__ import annotations

import pytest

from whyhang.engine.topology import NOT_TOLD, find_topology
from whyhang.engine.topology_arguments import read_arguments
from whyhang.schemas.config import TopologyConfig
from whyhang.schemas.flight_recorder import FlightDump, FlightGroup
from whyhang.schemas.incident import Incident, Snapshot
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.topology import Topology
from whyhang.schemas.words import ProcessKind

NOTHING = TopologyConfig()
MEGATRON = "pretrain_gpt.py --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4"
INSIDE = ("tp-cp-ep-pp-dp",)
OUTSIDE = ("tp-cp-ep-dp-pp",)


def job(
    *lines: str,
    ranks: int | None = 16,
    kind: ProcessKind = "trainer",
    flight: tuple[FlightDump, ...] = (),
) -> Incident:
    """A job whose ranks were started by these command lines."""
    processes = tuple(
        Process(pid=n + 1, node="a", kind=kind, rank=n, cmdline=("python", *line.split()))
        for n, line in enumerate(lines)
    )
    sample = Snapshot(index=0, at="", monotonic_seconds=0.0, processes=processes)
    return Incident(print_id=None, world_size=ranks, samples=(sample,), flight=flight)


def megatron_groups(
    tensor: int = 2, data: int = 2, world: int = 16, expert: int = 4
) -> tuple[FlightDump, ...]:
    """The dumps of a Megatron job, as far as they tell of groups."""
    stage = tensor * data
    dumps = []
    for rank in range(world):
        mine = rank // tensor * tensor
        first = rank // stage * stage
        members = {
            "default_pg": range(world),
            "TENSOR_MODEL_PARALLEL_GROUP": range(mine, mine + tensor),
            "DATA_PARALLEL_GROUP_WITH_CP": range(first + rank % tensor, first + stage, tensor),
            "PIPELINE_MODEL_PARALLEL_GROUP": range(rank % stage, world, stage),
            "EXPERT_MODEL_PARALLEL_GROUP": range(
                rank // expert * expert, (rank // expert + 1) * expert
            ),
        }
        groups = tuple(
            FlightGroup(name=str(n), description=text, ranks=tuple(ranks))
            for n, (text, ranks) in enumerate(members.items())
        )
        dumps.append(FlightDump(rank=rank, groups=groups))
    return tuple(dumps)


def known(found: Topology | Missing) -> Topology:
    """The topology, which there must be."""
    assert isinstance(found, Topology), found
    return found


def reason(found: Topology | Missing) -> str:
    """Why there is none."""
    assert isinstance(found, Missing), found
    return found.reason


@pytest.mark.parametrize(
    ("line", "sizes", "orders"),
    [
        (MEGATRON, {"tensor": 2, "pipeline": 4}, OUTSIDE),
        (f"{MEGATRON} --use-tp-pp-dp-mapping", {"tensor": 2, "pipeline": 4}, INSIDE),
        (
            "pretrain.py --context-parallel-size=2 --expert-model-parallel-size 8"
            " --expert-tensor-parallel-size 1 --num-layers-per-virtual-pipeline-stage 2",
            {"context": 2, "expert": 8, "expert_tensor": 1},
            OUTSIDE,
        ),
        (
            "train.py --deepspeed --pipeline-parallel-size 4",
            {"pipeline": 4},
            OUTSIDE,
        ),
        (
            "train.py model.tensor_model_parallel_size=4 ++model.pipeline_model_parallel_size=2",
            {"tensor": 4, "pipeline": 2},
            OUTSIDE,
        ),
        ("train.py trainer.strategy.use_tp_pp_dp_mapping=true pp_size=2", {}, INSIDE),
        (
            "-m torchtitan.train --parallelism.tensor_parallel_degree 2"
            " --parallelism.data_parallel_shard_degree -1",
            {"tensor": 2},
            OUTSIDE,
        ),
        ("-m vllm.entrypoints.api_server -tp 4 --pp 2", {"tensor": 4, "pipeline": 2}, INSIDE),
        ("-m sglang.launch_server --tp-size 8", {"tensor": 8}, INSIDE),
        ("train.py --tp_size 8", {"tensor": 8}, (*OUTSIDE, *INSIDE)),
        ("train.py --tp 8 --batch-size 4", None, ()),
        ("ppo.py actor.rollout.tensor_model_parallel_size=4", None, ()),
        ("train.py --tensor-model-parallel-size ${TP}", None, ()),
        ("train.py --vllm_tensor_parallel_size 4", None, ()),
        ("train.py --tensor-model-parallel-size", None, ()),
    ],
)
def test_command_lines_tell(
    line: str, sizes: dict[str, int] | None, orders: tuple[str, ...]
) -> None:
    """Options of training frameworks and servers are read; what is none of them says nothing."""
    found = read_arguments(tuple(line.split()))
    if sizes is None:
        assert found is None
        return
    assert found is not None
    assert (dict(found[0]) if sizes else {}, found[1]) == (sizes, orders)


def test_megatron_arguments_make_a_topology() -> None:
    """All trainers say the same: that is the topology, and its source is named."""
    found = known(find_topology(NOTHING, job(MEGATRON, MEGATRON)))
    assert (found.tensor, found.data, found.pipeline) == (2, 2, 4)
    assert found.source == "the command line"


def test_launchers_tell_where_trainers_do_not() -> None:
    """A server's workers have other names than its command line."""
    line = "vllm serve m --tensor-parallel-size 8 --pipeline-parallel-size 2"
    found = known(find_topology(NOTHING, job(line, kind="launcher")))
    assert (found.tensor, found.pipeline, found.order) == (8, 2, "tp-cp-ep-pp-dp")


def test_trainers_that_differ_are_not_believed() -> None:
    """Two sizes for one dimension are a contradiction, not a choice."""
    other = MEGATRON.replace("size 2", "size 4")
    text = reason(find_topology(NOTHING, job(MEGATRON, other)))
    assert text.startswith("the command line says tensor")


def test_hang_yaml_is_asked_first_and_completes() -> None:
    """hang.yaml has Megatron's order unless it says another; other sources add what it omits."""
    config = TopologyConfig(tensor=4, pipeline=2, place="hang.yaml:7")
    found = known(find_topology(config, job("train.py")))
    assert (str(found), found.order, found.source) == (
        "tp 4 x dp 2 x pp 2",
        "tp-cp-ep-dp-pp",
        "hang.yaml:7",
    )
    both = known(find_topology(config, job("train.py --context-parallel-size 2")))
    assert (str(both), both.source) == (
        "tp 4 x cp 2 x pp 2",
        "hang.yaml:7 and the command line",
    )


def test_the_order_of_ranks_may_be_given() -> None:
    """hang.yaml may say that pipelines lie within a replica."""
    config = TopologyConfig(pipeline=4, order="tp-cp-ep-pp-dp", place="hang.yaml:7")
    assert known(find_topology(config, job("train.py"))).order == "tp-cp-ep-pp-dp"


def test_an_order_that_nobody_tells_is_not_guessed() -> None:
    """With pipelines and replicas both orders are possible; with one replica they are the same."""
    line = "train.py --pp_size 4"
    assert "topology.order" in reason(find_topology(NOTHING, job(line)))
    assert known(find_topology(NOTHING, job(line, ranks=4))).pipeline == 4


def test_hang_yaml_must_divide_the_world() -> None:
    """What does not fit is reported with the place in hang.yaml, and nothing is named."""
    config = TopologyConfig(tensor=4, pipeline=3, place="hang.yaml:7")
    assert reason(find_topology(config, job("train.py"))) == (
        "hang.yaml:7: tensor 4 x pipeline 3 makes 12, which does not divide the world of 16 ranks"
    )
    data = TopologyConfig(tensor=4, data=3, place="hang.yaml:7")
    assert reason(find_topology(data, job("train.py"))) == (
        "hang.yaml:7 says data 3, and the other sizes leave 4"
    )


@pytest.mark.parametrize(
    ("config", "incident", "text"),
    [
        (
            TopologyConfig(tensor=8, place="hang.yaml:7"),
            job(MEGATRON),
            "hang.yaml:7 says tensor 8, the command line says tensor 2",
        ),
        (
            TopologyConfig(order="tp-cp-ep-pp-dp", place="hang.yaml:7"),
            job(MEGATRON),
            "they say different orders of ranks",
        ),
        (
            NOTHING,
            job(MEGATRON, flight=megatron_groups(tensor=4, data=1)),
            "the command line says tensor 2, the flight recorder says tensor 4",
        ),
        (
            NOTHING,
            job(f"{MEGATRON} --use-tp-pp-dp-mapping", flight=megatron_groups(expert=2)),
            "the groups of the flight recorder do not fit",
        ),
    ],
)
def test_contradictions_are_reported(config: TopologyConfig, incident: Incident, text: str) -> None:
    """Where two sources disagree there is no topology, and both are named."""
    assert text in reason(find_topology(config, incident))


def test_the_flight_recorder_tells_alone() -> None:
    """Process groups by their descriptions; groups of several dimensions confirm."""
    found = known(find_topology(NOTHING, job("train.py", flight=megatron_groups())))
    assert (str(found), found.expert_tensor) == ("tp 2 x dp 2 x pp 4, ep 4", 1)
    assert found.order == "tp-cp-ep-dp-pp"
    assert found.source == "the flight recorder"


def test_nobody_tells() -> None:
    """Without a source there is no topology: not even that all ranks are replicas."""
    assert find_topology(NOTHING, job("train.py", flight=(FlightDump(rank=0),))) == NOT_TOLD


def test_an_unknown_world_has_no_groups() -> None:
    """Sizes alone do not say which ranks stand together."""
    assert "world size" in reason(find_topology(NOTHING, job(MEGATRON, ranks=None)))
