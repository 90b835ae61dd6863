"""How the ranks of a job are arranged in parallel groups, and what these are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Literal, get_args

from whyhang.schemas.rankset import MAX_RANK, RankSet

Dimension = Literal["tensor", "context", "expert", "data", "pipeline"]
DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
SHORT: Mapping[Dimension, str] = {
    "tensor": "tp",
    "context": "cp",
    "expert": "ep",
    "data": "dp",
    "pipeline": "pp",
}
RankOrder = Literal["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]
RANK_ORDERS: tuple[RankOrder, ...] = get_args(RankOrder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The sizes of the groups and the order in which ranks fill them, fastest first.

    Tensor, context, data and pipeline groups multiply to the world. Expert groups cut the same
    ranks of a stage another way, above tensor groups of their own (``expert_tensor``, None where
    they are the common ones). Raises ValueError for sizes that do not fit.
    """

    world_size: int
    tensor: int = 1
    context: int = 1
    expert: int = 1
    pipeline: int = 1
    expert_tensor: int | None = None
    order: RankOrder = RANK_ORDERS[0]
    source: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.world_size <= MAX_RANK:
            raise ValueError(f"a world has between 1 and {MAX_RANK} ranks")
        given = {name: self.size(name) for name in ("tensor", "context", "pipeline")}
        if min(*given.values(), self.expert, self._expert_stride) < 1:
            raise ValueError("a group has at least one rank")
        _divide(given, self.world_size, f"the world of {self.world_size} ranks")
        # Where pipeline stages lie within a replica, experts share the ranks of one of its stages.
        room = self.stride("pipeline")
        cut = {"expert": self.expert, "expert tensor": self._expert_stride}
        _divide(cut if self.expert > 1 else {}, room, f"the {room} ranks of a stage")

    @property
    def data(self) -> int:
        """How many replicas of the model there are."""
        return self.world_size // (self.tensor * self.context * self.pipeline)

    @property
    def _expert_stride(self) -> int:
        return self.tensor if self.expert_tensor is None else self.expert_tensor

    def size(self, dimension: Dimension) -> int:
        """How many ranks a group of a dimension has."""
        found: int = getattr(self, dimension)
        return found

    def stride(self, dimension: Dimension) -> int:
        """How far apart neighbours in a group of a dimension are."""
        if dimension == "expert":
            return self._expert_stride
        names = {short: name for name, short in SHORT.items()}
        order = [names[short] for short in self.order.split("-") if short != SHORT["expert"]]
        return prod(self.size(name) for name in order[: order.index(dimension)])

    def coordinate(self, rank: int, dimension: Dimension) -> int:
        """The place of a rank in its group of a dimension."""
        return rank // self.stride(dimension) % self.size(dimension)

    def coordinates(self, rank: int) -> Mapping[Dimension, int]:
        """The place of a rank in each of its groups."""
        return {dimension: self.coordinate(rank, dimension) for dimension in DIMENSIONS}

    def rank_at(self, coordinates: Mapping[Dimension, int]) -> int:
        """The rank at a place. Expert coordinates follow from the others."""
        return sum(
            self.stride(dimension) * coordinates.get(dimension, 0)
            for dimension in DIMENSIONS
            if dimension != "expert"
        )

    def group(self, dimension: Dimension, rank: int) -> RankSet:
        """The ranks that communicate with a rank in a dimension, itself included."""
        stride, size = self.stride(dimension), self.size(dimension)
        first = rank - self.coordinate(rank, dimension) * stride
        return RankSet.from_bits(_repeat(1, stride, size) << first)

    def groups(self, dimension: Dimension) -> Iterator[RankSet]:
        """All groups of a dimension, by their numbers."""
        stride, size = self.stride(dimension), self.size(dimension)
        one = _repeat(1, stride, size)
        for start in range(0, self.world_size, stride * size):
            for first in range(start, start + stride):
                yield RankSet.from_bits(one << first)

    def number(self, dimension: Dimension, rank: int) -> int:
        """The number of the group of a dimension that a rank is in."""
        stride, size = self.stride(dimension), self.size(dimension)
        return rank // (stride * size) * stride + rank % stride

    def slice(self, dimension: Dimension, coordinate: int) -> RankSet:
        """All ranks with a coordinate: a pipeline stage, a replica of the model."""
        stride, size = self.stride(dimension), self.size(dimension)
        period = stride * size
        block = ((1 << stride) - 1) << coordinate * stride
        return RankSet.from_bits(_repeat(block, period, self.world_size // period))

    def beside(self, ranks: RankSet, step: int) -> RankSet:
        """The neighbours of ranks, so many pipeline stages further on; after the last is the first.

        Pipelines with several chunks of layers a rank do pass on from the last stage to the first.
        """
        found, stages = 0, self.size("pipeline")
        for stage in range(stages):
            here = (ranks & self.slice("pipeline", stage)).bits
            by = ((stage + step) % stages - stage) * self.stride("pipeline")
            found |= here << by if by >= 0 else here >> -by
        return RankSet.from_bits(found)

    def named(self, rank: int) -> Iterator[tuple[str, RankSet]]:
        """The named groups that hold a rank; of two names for the same ranks the better first."""
        stage, replica = self.coordinate(rank, "pipeline"), self.coordinate(rank, "data")
        stages, replicas = self.slice("pipeline", stage), self.slice("data", replica)
        if self.pipeline > 1:
            yield f"pp stage {stage}", stages
        if self.data > 1 and len(replicas) > 1:
            yield f"dp {replica}", replicas
        if self.pipeline > 1 and self.data > 1:
            yield f"pp stage {stage} of dp {replica}", stages & replicas
        for dimension in DIMENSIONS:
            if self.size(dimension) > 1:
                number = self.number(dimension, rank)
                yield f"{SHORT[dimension]} group {number}", self.group(dimension, rank)

    def __str__(self) -> str:
        """``tp 4 x dp 2 x pp 2``; dimensions of size 1 are left out."""
        shown = [f"{SHORT[name]} {self.size(name)}" for name in DIMENSIONS if name != "expert"]
        text = " x ".join(part for part in shown if not part.endswith(" 1")) or "no groups"
        return f"{text}, ep {self.expert}" if self.expert > 1 else text


def _repeat(block: int, period: int, count: int) -> int:
    """``count`` copies of some bits, a period apart."""
    return block * (((1 << period * count) - 1) // ((1 << period) - 1))


def _divide(sizes: Mapping[str, int], whole: int, what: str) -> None:
    product = prod(sizes.values())
    if whole % product:
        told = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        made = f" makes {product}, which" if told.count(" x ") else ""
        raise ValueError(f"{told}{made} does not divide {what}")
