"""RAS replies as JSON documents, one shape for each kind of reply. Pure."""

from __future__ import annotations

from typing import Any

from whyhang.schemas.ras import (
    WARNING_KINDS,
    ClientMessages,
    CommGroup,
    Communicator,
    JobSummary,
    JsonReply,
    MonitorEvent,
    MonitorEvents,
    RasBlock,
    RasDialogue,
    RasRank,
    RasReply,
    TextReply,
)

Document = dict[str, Any]


def reply_document(reply: RasReply) -> Document:
    """What ``whyhang ras --format json`` prints of a reply, without our reading of it."""
    if isinstance(reply, TextReply):
        return _text(reply)
    if isinstance(reply, JsonReply):
        return _json(reply)
    if isinstance(reply, ClientMessages):
        attempts = [{"addr": a.addr, "port": a.port, "error": a.error} for a in reply.attempts]
        return {"format": "client-stderr", "attempts": attempts, "problem": reply.problem}
    if isinstance(reply, MonitorEvents):
        document: Document = {"format": f"monitor-{reply.form}"}
        document["events"] = [_event(event) for event in reply.events]
        if reply.unparsed:
            document["unparsed"] = list(reply.unparsed)
        return document
    return _dialogue(reply)


def _dialogue(reply: RasDialogue) -> Document:
    return {
        "dialogue": [list(exchange) for exchange in reply.exchanges],
        "result": reply_document(reply.result),
    }


def _text(reply: TextReply) -> Document:
    blocks = [_block(block) for block in reply.blocks]
    return {
        "format": "text",
        "complete": reply.complete,
        "problem": reply.problem,
        "version": reply.version,
        "built_cuda": reply.built_cuda,
        "cuda_runtime": reply.cuda_runtime,
        "cuda_driver": reply.cuda_driver,
        "job": None if reply.job is None else _job(reply.job),
        "collection_seconds": reply.collection_seconds,
        "groups": [_group(row) for row in reply.groups],
        "errors": [block for block in blocks if block["kind"] not in WARNING_KINDS],
        "warnings": [block for block in blocks if block["kind"] in WARNING_KINDS],
        "unparsed": list(reply.unparsed),
    }


def _job(job: JobSummary) -> Document:
    nodes = []
    for row in job.node_distribution:
        entry: Document = {"nodes": row.nodes, "processes_per_node": row.processes_per_node}
        if row.gpus_per_process is not None:
            entry["gpus_per_process"] = row.gpus_per_process
        nodes.append(entry)
    return {
        "nodes": job.nodes,
        "processes": job.processes,
        "gpus": job.gpus,
        "processes_per_node": job.processes_per_node,
        "gpus_per_process": job.gpus_per_process,
        "uniform": job.uniform,
        "node_distribution": nodes,
        "process_distribution": [
            {"processes": row.processes, "gpus_per_process": row.gpus_per_process}
            for row in job.process_distribution
        ],
        "outlier_nodes": [{"host": n.host, "pids": list(n.pids)} for n in job.outlier_nodes],
    }


def _group(row: CommGroup) -> Document:
    document: Document = {
        "group": row.group,
        "comms": row.comms,
        "nodes_per_comm": row.nodes_per_comm,
        "ranks_per_node": list(row.ranks_per_node),
        "ranks_per_comm": row.ranks_per_comm,
        "ranks_in_group": row.ranks_in_group,
        "status": row.status,
        "errors": list(row.errors),
    }
    if row.ghost:
        document["ghost"] = True
    return document


def _block(block: RasBlock) -> Document:
    comm = block.comm
    document: Document = {
        "kind": block.kind,
        "comm": None
        if comm is None
        else {"group": comm.group, "index": comm.index, "hash": comm.hash},
    }
    if block.count is not None:
        document["count"] = block.count
    if block.processes is not None:
        document["processes"] = [
            {"pid": p.pid, "host": p.host, "gpus": list(p.gpus), "nvml": list(p.nvml)}
            for p in block.processes
        ]
    if block.ranks is not None:
        document["ranks"] = _ranks(block.ranks)
    if block.status_groups is not None:
        document["status_groups"] = [
            {"n": g.n, "status": g.status, "ranks": _ranks(g.ranks)} for g in block.status_groups
        ]
    if block.count_groups is not None:
        document["count_groups"] = [
            {
                "op": group.op,
                "values": [
                    {"n": v.n, "op_count": v.op_count, "ranks": _ranks(v.ranks)}
                    for v in group.values
                ],
            }
            for group in block.count_groups
        ]
    if block.error_groups is not None:
        document["error_groups"] = [
            {
                "phase": group.phase,
                "count": group.count,
                "values": [
                    {"n": v.n, "error": v.error, "ranks": _ranks(v.ranks)} for v in group.values
                ],
            }
            for group in block.error_groups
        ]
    return document


def _ranks(ranks: tuple[RasRank, ...] | None) -> list[Document] | None:
    if ranks is None:
        return None
    return [
        {"rank": r.rank, "gpu": r.gpu, "nvml": r.nvml, "pid": r.pid, "host": r.host} for r in ranks
    ]


def _json(reply: JsonReply) -> Document:
    document: Document = {
        "format": "json",
        "complete": reply.complete,
        "repaired": reply.repaired,
        "version": reply.version,
        "cuda_runtime": reply.cuda_runtime,
        "cuda_driver": reply.cuda_driver,
        "collection_seconds": reply.collection_seconds,
        "timeouts": reply.timeouts,
        "communicators": [_communicator(comm) for comm in reply.communicators],
    }
    if reply.problem is not None:
        document["problem"] = reply.problem
    return document


def _communicator(comm: Communicator) -> Document:
    mismatch = comm.count_mismatch()
    return {
        "hash": comm.hash,
        "size": comm.size,
        "missing": [
            {
                "rank": m.rank,
                "pid": m.pid,
                "host": m.host,
                "gpu": m.gpu,
                "unresponsive": m.unresponsive,
                "considered_dead": m.considered_dead,
            }
            for m in comm.missing
        ],
        "not_running": [
            {"rank": m.rank, "pid": m.pid, "host": m.host, "gpu": m.gpu, "status": m.status}
            for m in comm.members
            if m.status != "RUNNING"
        ],
        "count_mismatch": {
            operation: {str(count): list(ranks) for count, ranks in counts.items()}
            for operation, counts in mismatch.items()
        },
    }


def _event(event: MonitorEvent) -> Document:
    return {
        "timestamp": event.timestamp,
        "event": event.event,
        "pid": event.pid,
        "host": event.host,
        "gpus": list(event.gpus),
        "nvml": list(event.nvml),
        "details": event.details,
    }
