"""The parallel groups that flight recorder dumps show: Megatron's and device meshes'."""

from __future__ import annotations

from collections.abc import Mapping

from whyhang.engine.topology_claim import Claim
from whyhang.schemas.incident import Incident
from whyhang.schemas.missing import Missing
from whyhang.schemas.rankset import RankSet
from whyhang.schemas.topology import Dimension

SOURCE = "the flight recorder"
_SPANS: Mapping[str, tuple[Dimension, ...]] = {
    "TENSOR_MODEL_PARALLEL_GROUP": ("tensor",),
    "CONTEXT_PARALLEL_GROUP": ("context",),
    "EXPERT_MODEL_PARALLEL_GROUP": ("expert",),
    "DATA_PARALLEL_GROUP": ("data",),
    "DATA_PARALLEL_GROUP_WITH_CP": ("data", "context"),
    "PIPELINE_MODEL_PARALLEL_GROUP": ("pipeline",),
    "MODEL_PARALLEL_GROUP": ("tensor", "pipeline"),
    "mesh_tp": ("tensor",),
    "mesh_cp": ("context",),
    "mesh_dp": ("data",),
    "mesh_pp": ("pipeline",),
}


def claim_of_groups(incident: Incident) -> Claim | Missing | None:
    """What the recorders of all ranks show together; None if they show no group that is known.

    Groups of several dimensions give no size; the topology that comes out must have them.
    """
    seen = {
        (_SPANS[group.description], group.ranks)
        for dump in incident.flight
        for group in dump.groups
        if group.description in _SPANS and group.ranks
    }
    sizes: dict[str, int] = {}
    for dimensions, ranks in sorted(seen):
        if len(dimensions) > 1:
            continue
        name = dimensions[0]
        if sizes.setdefault(name, len(ranks)) != len(ranks):
            return Missing(f"{SOURCE} shows {name} groups of {sizes[name]} and of {len(ranks)}")
        if name == "expert" and len(ranks) > 1:
            sizes["expert_tensor"] = sorted(ranks)[1] - min(ranks)
    if not sizes:
        return None
    groups = frozenset((dimensions, RankSet(ranks)) for dimensions, ranks in seen)
    return Claim(source=SOURCE, sizes=sizes, groups=groups)
