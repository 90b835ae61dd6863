"""The processes of the job on this host, with all that /proc tells of each."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import replace

from whyhang.collectors import procfs
from whyhang.collectors.blocked_on import read_blocked_on
from whyhang.collectors.kinds import (
    WORKER_NAME,
    Identity,
    ancestors,
    find_starters,
    find_trainers,
    is_launcher,
    is_spawned,
    is_whyhang,
    kind_of,
    number_workers,
)
from whyhang.collectors.masking import mask_cmdline
from whyhang.collectors.ranks import JobEnvironment, parse_job_environment
from whyhang.collectors.titles import ENGINE, PLACED, local_rank_in, ranks_by_title, title_of
from whyhang.collectors.unread_ranks import closed_siblings, closed_trainers
from whyhang.collectors.visible_devices import NO_DEVICE, Device, device_of, visible_devices
from whyhang.schemas.environment import MARKER, is_marked
from whyhang.schemas.process import Process
from whyhang.schemas.words import PROCESS_KINDS, ProcessKind

_KERNEL_THREADS = 2  # pid of kthreadd, parent of all of them; in a container, of anybody


def list_processes(
    *,
    node: str,
    root: int | None = None,
    exclude: Container[int] = (),
    marker: str | None = None,
    known: Iterable[Process] = (),
) -> tuple[Process, ...]:
    """The job's processes, trainers first, then by rank.

    With ``root``: the tree below that process, it included, and what belongs to the same job by
    its environment (``WHYHANG_JOB=marker``, or the same rendezvous), so that orphans are not
    lost. Without: every Python process with a rank, what it started, and its launchers. Never
    ``exclude``, shells or processes of whyhang. ``known`` is an earlier table: what a process
    was stands there for the time when it cannot be read any more (a zombie has no environment).
    """
    table = read_identities(tree=root)
    ours = frozenset(
        pid
        for pid, identity in table.items()
        if pid == os.getpid() or pid in exclude or is_whyhang(identity)
    )
    parents = {pid: identity.ppid for pid, identity in table.items()}
    tree = _below({root}, parents) if root is not None else ()
    trainers = find_trainers(table, ignored=ours, preferred=tree)
    earlier = {process.pid: process for process in known if process.node == node}
    trainers |= _remembered(table, earlier) | closed_siblings(table, trainers)
    if root is None:
        chosen = _of_host(table, trainers, marker)
    else:
        chosen = _of_tree(table, trainers, root, marker)
        trainers &= chosen
        were = {pid: process for pid, process in earlier.items() if process.kind == "trainer"}
        if not trainers and were:
            table, trainers = _nameless_still(table, chosen - ours, were)
        elif not trainers:
            table, trainers = _lone_trainer(table, chosen - ours)
            trainers = trainers or closed_trainers(table, chosen - ours)
    table = _ranked_by_title(table, trainers)
    starters = find_starters(trainers, table)
    kept = [table[pid] for pid in chosen - ours if not table[pid].is_shell]
    processes = (
        read_process(
            identity,
            node=node,
            kind=kind_of(identity, table, trainers=trainers, starters=starters),
            job=_job_of(identity, table, trainers),
            earlier=earlier.get(identity.pid),
        )
        for identity in kept
    )
    return tuple(sorted(number_workers(processes), key=sort_key))


def sort_key(process: Process) -> tuple[int, int, int]:
    """Trainers first, then the other kinds in their usual order; by rank, by pid."""
    rank = process.rank if process.rank is not None else 1 << 62
    return PROCESS_KINDS.index(process.kind), rank, process.pid


def read_identities(*, tree: int | None = None) -> Mapping[int, Identity]:
    """Who is who on this host.

    Programs that embed Python are looked for below ``tree`` only. Without ``tree``, what is no
    Python is told by its name alone.
    """
    stats = {pid: stat for pid in procfs.list_pids() if (stat := procfs.read_stat(pid)) is not None}
    second = stats.get(_KERNEL_THREADS)
    kernel = second.pid if second is not None and second.name == "kthreadd" else None
    in_tree = _below({tree}, {pid: stat.ppid for pid, stat in stats.items()}) if tree else set()
    return {
        pid: _read_identity(stat, whole=tree is not None, look_inside=pid in in_tree)
        for pid, stat in stats.items()
        if kernel is None or kernel not in (pid, stat.ppid)
    }


def read_process(
    identity: Identity,
    *,
    node: str,
    kind: ProcessKind,
    job: JobEnvironment,
    earlier: Process | None = None,
) -> Process:
    """All that /proc tells of one process; stacks come later."""
    pid = identity.pid
    stat = procfs.read_stat(pid)
    status = procfs.read_status(pid)
    home = (identity.environ or {}).get("HOME", "")
    os_threads = procfs.read_os_threads(pid)
    words = identity.cmdline or procfs.read_cmdline(pid)
    cmdline = mask_cmdline(words, homes=(home,)) if words else None
    device = _device(identity, kind=kind, job=job)
    process = Process(
        pid=pid,
        node=node,
        kind=kind,
        rank=None if kind == "launcher" else job.rank,
        local_rank=None if kind == "launcher" else _local_rank(job, words, kind),
        ppid=identity.ppid,
        name=identity.name,
        cmdline=cmdline,
        python=_python(identity),
        # Gone since it was listed: X, as the kernel calls the dead.
        state=stat.state if stat is not None else "X" if procfs.is_gone(pid) else None,
        wchan=procfs.read_wchan(pid),
        syscall=procfs.read_syscall(pid),
        blocked_on=read_blocked_on(pid, os_threads, home=home),
        kernel_stack=procfs.read_kernel_stack(pid),
        cpu_seconds=stat.cpu_seconds if stat is not None else None,
        io=procfs.read_io(pid),
        exit=_exit_of(stat, status),
        tracer_pid=procfs.tracer_of(status),
        run_queue_seconds=procfs.read_run_queue_seconds(pid),
        cpus_allowed=status.get("Cpus_allowed_list") or None,
        os_threads=os_threads,
        gpu_index=device.index,
        gpu_uuid=device.uuid,
    )
    return process if earlier is None or identity.environ is not None else _with(process, earlier)


def _python(identity: Identity) -> str | None:
    """The version of its interpreter, which may be part of another program."""
    if identity.exe is None:
        return None
    version = procfs.python_of(identity.exe)[1]
    if version is None and identity.is_python:
        return procfs.embedded_python(identity.pid)
    return version


def _with(process: Process, earlier: Process) -> Process:
    """The process, with what was known of it before its environment was closed to us."""
    return replace(
        process,
        kind=earlier.kind if process.kind == "other" else process.kind,
        rank=earlier.rank if process.rank is None else process.rank,
        local_rank=earlier.local_rank if process.local_rank is None else process.local_rank,
        cmdline=process.cmdline or earlier.cmdline,
        python=process.python or earlier.python,
        gpu_index=earlier.gpu_index,
        gpu_uuid=earlier.gpu_uuid,
    )


def _read_identity(stat: procfs.Stat, *, whole: bool, look_inside: bool) -> Identity:
    exe = procfs.read_exe(stat.pid)
    is_python: bool | None = None if exe is None else procfs.python_of(exe)[0]
    identity = Identity(
        pid=stat.pid,
        ppid=stat.ppid,
        name=stat.name,
        state=stat.state,
        session=stat.session,
        cpu_seconds=stat.cpu_seconds,
        exe=exe,
        is_python=is_python,
    )
    if stat.state == "Z" or (is_python is False and not whole):
        return identity  # the rest would cost reads and tell nothing
    environ = procfs.read_environ(stat.pid)
    identity = replace(
        identity,
        cmdline=procfs.read_cmdline(stat.pid),
        environ=environ,
        job=parse_job_environment(environ) if environ is not None else JobEnvironment(),
    )
    if is_python is False and look_inside and identity.carries_rank and not identity.is_shell:
        embeds = not is_launcher(identity) and procfs.embedded_python(stat.pid) is not None
        identity = replace(identity, is_python=embeds)
    return identity


def _device(identity: Identity, *, kind: ProcessKind, job: JobEnvironment) -> Device:
    """The GPU that its environment names; a launcher has none of its own."""
    visible = visible_devices(identity.environ or {})
    if kind == "launcher" or not isinstance(visible, str):
        return NO_DEVICE
    return device_of(visible, job.local_rank)


def _below(roots: Collection[int], parents: Mapping[int, int]) -> set[int]:
    """The roots that exist and everything below them."""
    children: dict[int, list[int]] = {}
    for pid, ppid in parents.items():
        children.setdefault(ppid, []).append(pid)
    found: set[int] = set()
    waiting = [pid for pid in roots if pid in parents]
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting.extend(children.get(pid, ()))
    return found


def _of_host(
    table: Mapping[int, Identity], trainers: frozenset[int], marker: str | None
) -> frozenset[int]:
    parents = {pid: identity.ppid for pid, identity in table.items()}
    starters = find_starters(trainers, table)
    launchers = {
        pid
        for pid, started in starters.items()
        # One trainer below a Python process may be a shell's or an editor's doing.
        if is_launcher(table[pid]) or (table[pid].is_python and len(started) > 1)
    }
    orphans = {
        pid
        for pid, identity in table.items()
        if identity.is_python
        and identity.carries_rank
        and not is_launcher(identity)
        # A rank of Slurm's alone, with no trainer above it, is a bystander in a batch script.
        and (identity.job.source == "RANK" or identity.name == WORKER_NAME)
    }
    return frozenset(_below(trainers | orphans | _marked(table, marker), parents) | launchers)


def _of_tree(
    table: Mapping[int, Identity], trainers: frozenset[int], root: int, marker: str | None
) -> frozenset[int]:
    parents = {pid: identity.ppid for pid, identity in table.items()}
    tree = _below({root}, parents)
    mine = _below({os.getpid()}, parents) - tree
    # A launcher's own environment tells the job only in part: the ranks' tells it all.
    jobs = {table[pid].job.job for pid in tree & trainers}
    jobs = jobs or {table[pid].job.job for pid in tree if table[pid].carries_rank}
    strays = {
        pid
        for pid, identity in table.items()
        if identity.carries_rank
        and identity.job.job is not None
        and identity.job.job in jobs
        # Slurm's variables stand in the user's shell as well, and in all that was started there.
        and not identity.is_shell
        and (identity.is_python or identity.job.master is not None)
    }
    return frozenset(tree | (_below(strays | _marked(table, marker), parents) - mine))


def _marked(table: Mapping[int, Identity], marker: str | None) -> set[int]:
    if marker is None:
        return set()
    return {
        pid
        for pid, identity in table.items()
        if is_marked((identity.environ or {}).get(MARKER), marker)
    }


def _remembered(table: Mapping[int, Identity], earlier: Mapping[int, Process]) -> frozenset[int]:
    """Trainers of an earlier table that cannot be recognised now, but are still there."""
    return frozenset(
        pid
        for pid, process in earlier.items()
        if process.kind == "trainer" and pid in table and table[pid].environ is None
    )


def _lone_trainer(
    table: Mapping[int, Identity], tree: Collection[int]
) -> tuple[Mapping[int, Identity], frozenset[int]]:
    """A job that was started without ranks: its one Python process is rank 0 of 1.

    Not where it spawned Python processes of its own: those may be the ranks, numbered by an
    argument that no one can see from outside.
    """
    pythons = [table[pid] for pid in sorted(tree) if table[pid].is_python]
    tops = [
        identity
        for identity in pythons
        if not any(
            above.pid in tree and above.is_python for above in ancestors(identity.pid, table)
        )
    ]
    if len(tops) != 1 or tops[0].environ is None or is_launcher(tops[0]):
        return table, frozenset()
    top = tops[0]
    spawned = [x for x in pythons if is_spawned(x.cmdline) and x.name != WORKER_NAME]
    if spawned:
        # Two or more of one parent are kept as ranks nobody knows the numbers of; one may be
        # anything. Their stacks tell more.
        peers = [x for x in spawned if sum(y.ppid == x.ppid for y in spawned) > 1]
        return table, frozenset(x.pid for x in peers)
    alone = replace(top, job=replace(top.job, rank=0, local_rank=0, world_size=1))
    return {**table, top.pid: alone}, frozenset((top.pid,))


def _nameless_still(
    table: Mapping[int, Identity], tree: Collection[int], were: Mapping[int, Process]
) -> tuple[Mapping[int, Identity], frozenset[int]]:
    """The trainers of an earlier table that no environment names, as far as they are still there.

    Others than these are no trainers now: what is left of a job is not its lone rank.
    """
    still = {
        pid: replace(
            table[pid],
            job=replace(table[pid].job, rank=process.rank, local_rank=process.local_rank),
        )
        for pid, process in were.items()
        if pid in tree and table[pid].is_python
    }
    return {**table, **still}, frozenset(still)


def _ranked_by_title(
    table: Mapping[int, Identity], trainers: frozenset[int]
) -> Mapping[int, Identity]:
    """The table with the ranks that process titles tell, engine by engine."""
    engines: dict[int, dict[int, str]] = {}
    for pid in trainers:
        title = title_of(table[pid].cmdline, table[pid].name)
        if table[pid].job.rank is None and (PLACED.match(title) or ENGINE.match(title)):
            engines.setdefault(table[pid].ppid, {})[pid] = title
    ranks = {
        pid: rank for titles in engines.values() for pid, rank in ranks_by_title(titles).items()
    }
    told = {
        pid: replace(table[pid], job=replace(table[pid].job, rank=rank, source="title"))
        for pid, rank in ranks.items()
    }
    return {**table, **told}


def _local_rank(
    job: JobEnvironment, cmdline: tuple[str, ...] | None, kind: ProcessKind
) -> int | None:
    if job.local_rank is not None or kind != "trainer":
        return job.local_rank
    return local_rank_in(cmdline)


def _job_of(
    identity: Identity, table: Mapping[int, Identity], trainers: frozenset[int]
) -> JobEnvironment:
    """The job environment of the trainer a process belongs to, else its own."""
    if identity.pid in trainers:
        return identity.job
    above = next((x for x in ancestors(identity.pid, table) if x.pid in trainers), None)
    return identity.job if above is None else above.job


def _exit_of(stat: procfs.Stat | None, status: Mapping[str, str]) -> int | None:
    """The exit code of a zombie; the kernel shows others' as 0."""
    if stat is None or stat.state != "Z":
        return None
    owner = status.get("Uid", "").split()
    may_read = os.geteuid() == 0 or owner[:1] == [str(os.geteuid())]
    return stat.exit_code if may_read else None
