"""The topology of a job: what hang.yaml, command lines and flight recorders say, put together.

Sources complete each other. Where two of them contradict each other nobody knows which is right:
there is no topology then, and the report says why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whyhang.engine import topology_arguments, topology_groups
from whyhang.engine.topology_arguments import claim_of_arguments
from whyhang.engine.topology_claim import Claim
from whyhang.engine.topology_groups import claim_of_groups
from whyhang.schemas.config import TopologyConfig
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import DIMENSIONS, RANK_ORDERS, Dimension, Topology

NOT_TOLD = Missing("neither hang.yaml nor a command line nor a flight recorder tells the topology")

GUESSED_FROM = (topology_arguments.SOURCE, topology_groups.SOURCE)


def find_topology(config: TopologyConfig, incident: Incident) -> Topology | Missing:
    """The topology of an incident's job, or why there is none."""
    found = (_claim_of_config(config), claim_of_arguments(incident), claim_of_groups(incident))
    for claim in found:
        if isinstance(claim, Missing):
            return claim
    claims = [claim for claim in found if isinstance(claim, Claim)]
    if not claims:
        return NOT_TOLD
    if incident.world_size is None:
        return Missing("the world size is not known")
    return _fit(claims, incident.world_size)


def _claim_of_config(config: TopologyConfig) -> Claim | None:
    sizes: dict[str, int | None] = {name: getattr(config, name) for name in DIMENSIONS}
    given = {name: size for name, size in sizes.items() if size is not None}
    if not given and config.order is None:
        return None
    orders = RANK_ORDERS if config.order is None else (config.order,)
    return Claim(source=config.place, sizes=given, orders=orders)


def _fit(claims: Sequence[Claim], world_size: int) -> Topology | Missing:
    sizes: dict[str, int] = {}
    owners: dict[str, str] = {}
    for claim in claims:
        for name, size in claim.sizes.items():
            if sizes.setdefault(name, size) != size:
                return Missing(
                    f"{owners[name]} says {name} {sizes[name]}, {claim.source} says {name} {size}"
                )
            owners.setdefault(name, claim.source)
    source = " and ".join(dict.fromkeys(owners.values())) or claims[0].source
    data = sizes.pop("data", None)
    candidates, faults = _arrange(claims, sizes, world_size, source)
    if not candidates:
        return Missing(f"{source}: {faults[0] if faults else 'they say different orders of ranks'}")
    if data not in (None, candidates[0].data):
        return Missing(
            f"{owners['data']} says data {data}, and the other sizes leave {candidates[0].data}"
        )
    seen = [group for claim in claims for group in claim.groups]
    fitting = [each for each in candidates if all(_has(each, *group) for group in seen)]
    return _choose(fitting, source, is_asked_for=claims[0].source not in GUESSED_FROM)


def _arrange(
    claims: Sequence[Claim], sizes: Mapping[str, int], world_size: int, source: str
) -> tuple[list[Topology], list[str]]:
    """The arrangements of these sizes in the orders that all claims allow, and what is wrong."""
    found, faults = [], []
    for order in RANK_ORDERS:
        if all(order in claim.orders for claim in claims):
            try:
                made = Topology(world_size=world_size, order=order, source=source, **sizes)
            except ValueError as error:
                faults.append(str(error))
            else:
                found.append(made)
    return found, faults


def _choose(fitting: Sequence[Topology], source: str, *, is_asked_for: bool) -> Topology | Missing:
    """The one arrangement that has the groups which were seen.

    Who writes the sizes into hang.yaml and no order has Megatron's.
    """
    if not fitting:
        return Missing(f"{source}: the groups of the flight recorder do not fit")
    first = fitting[0]
    if len(fitting) > 1 and min(first.pipeline, first.data) > 1 and not is_asked_for:
        return Missing(f"{source}: the order of ranks is not known; say `topology.order`")
    return first


def _has(topology: Topology, dimensions: tuple[Dimension, ...], ranks: RankSet) -> bool:
    """Whether a group that was seen is one of the topology's."""
    first = next(iter(ranks))
    found = RankSet([first])
    for dimension in dimensions:
        for rank in found:
            found = found | topology.group(dimension, rank)
    return found == ranks
