"""What one source says of a job's parallel groups; several are put together to a topology."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import RANK_ORDERS, Dimension, RankOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The sizes that a source gives, the orders that it allows and the groups that it has seen.

    ``sizes`` are by name: a dimension, or ``expert_tensor``. Each seen group stands with the
    dimensions that it spans.
    """

    source: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    orders: tuple[RankOrder, ...] = RANK_ORDERS
    groups: frozenset[tuple[tuple[Dimension, ...], RankSet]] = frozenset()
