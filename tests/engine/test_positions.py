"""Positions: what a process is doing, told from frames."""

from __future__ import annotations

import pytest

from whyhang.engine.positions import Positions, is_user_code
from whyhang.rules.ruleset import FrameList
from whyhang.schemas.frame import Frame
from whyhang.schemas.missing import Missing
from whyhang.schemas.process import Process
from whyhang.schemas.stack import Stack, Thread

SITE = "/opt/venv/lib/python3.11/site-packages/"
LISTS = {
    "transparent": FrameList(name="transparent", patterns=(r"/^threading\./",)),
    "communication": FrameList(
        name="communication", patterns=("torch.distributed.distributed_c10d.barrier",)
    ),
    "idle": FrameList(name="idle", patterns=("ray._private.worker.main_loop",)),
    "main_threads": FrameList(name="main_threads", patterns=("Training*",), frames=False),
}
WAIT = Frame("Condition.wait", "/usr/lib/python3.11/threading.py", "threading.py", 327)
BARRIER = Frame("barrier", f"{SITE}torch/distributed/distributed_c10d.py", None, 5356)
HELPER = Frame("_exception_logger.<locals>.wrapper", f"{SITE}torch/distributed/c10d_logger.py")
ENGINE = Frame("_engine_run_backward", f"{SITE}torch/autograd/graph.py", None, 825)
USER = Frame("Data.read", "/srv/code/data.py", "data.py", 58)
JOIN = Frame("Thread.join", "/usr/lib/python3.11/threading.py", "threading.py", 1119)
RESULT = Frame("Future.result", "/usr/lib/python3.11/concurrent/futures/_base.py", None, 451)
POOL = Frame("_worker", "/usr/lib/python3.11/concurrent/futures/thread.py", None, 81)
REST = Frame("Worker.main_loop", f"{SITE}ray/_private/worker.py", None, 880)
TQDM = Frame("TMonitor.run", f"{SITE}tqdm/_monitor.py", None, 60)
SCRIPT = Frame("<module>", "/srv/code/train.py", "train.py", 90)
NATIVE = Frame("pthread_cond_wait", "libc.so.6", "libc.so.6", 0, "libc.so.6")


def thread(name: str | None, *frames: Frame) -> Thread:
    """A thread with these frames, innermost first."""
    return Thread(name=name, stack=Stack(frames))


def test_position_skips_what_only_carries_the_wait() -> None:
    """Transparent and unknown library frames are walked over, outwards."""
    positions = Positions(LISTS)
    assert positions.top(Stack((WAIT, USER))) == USER
    assert positions.top(Stack((HELPER, BARRIER, USER))) == BARRIER
    assert positions.top(Stack((NATIVE, USER))) == USER


def test_no_known_frame_is_unknown() -> None:
    """A stack of library frames alone has no position."""
    assert isinstance(Positions(LISTS).top(Stack((HELPER,))), Missing)


def test_dump_modes_share_a_position_and_an_identity() -> None:
    """Plain, nonblocking and native dumps of one process are one class."""
    plain, native = Stack((WAIT, USER)), Stack((NATIVE, WAIT, USER))
    positions = Positions(LISTS)
    assert positions.top(plain) == positions.top(native)
    assert plain.python == native.python


@pytest.mark.parametrize(
    ("threads", "expected"),
    [
        ((thread("MainThread", USER), thread("Thread-1", WAIT)), "MainThread"),
        ((thread("MainThread", WAIT), thread("TrainingThread(f)", USER)), "TrainingThread(f)"),
        ((thread("MainThread", REST), thread("TrainingThread(f)")), "TrainingThread(f)"),
        ((thread("TrainingThread"), thread("Training-2", USER)), "Training-2"),
        ((thread("Thread-1", USER),), "Thread-1"),
        ((thread(None, USER), thread(None)), None),
    ],
)
def test_thread_that_matters(threads: tuple[Thread, ...], expected: str | None) -> None:
    """The main thread, unless the rules name a better one or it is the only one with frames."""
    found = Positions(LISTS).thread(Process(pid=1, node="a", threads=threads))
    assert isinstance(found, Thread)
    assert found.name == expected


@pytest.mark.parametrize("name", [None, "", "Dummy-3"])
def test_a_backward_pass_is_where_its_own_thread_is(name: str | None) -> None:
    """What hooks do in a thread of the autograd engine counts, not that the main thread waits."""
    main, hook = thread("MainThread", NATIVE, ENGINE, USER), thread(name, WAIT, BARRIER)
    positions = Positions(LISTS)
    assert positions.thread(Process(pid=1, node="n", threads=(main, hook))) == hook
    elsewhere = thread("MainThread", WAIT, USER)
    assert positions.thread(Process(pid=1, node="n", threads=(hook, elsewhere))) == elsewhere


def test_a_backward_pass_in_a_dump_without_names() -> None:
    """The main thread has no name either, and is not its own backward pass."""
    main, hook = thread(None, ENGINE, USER, SCRIPT), thread(None, WAIT, BARRIER)
    positions = Positions(LISTS)
    assert positions.thread(Process(pid=1, node="n", threads=(main, hook))) == hook


def test_an_idle_thread_is_not_the_backward_pass() -> None:
    """Threads without a position, and threads that Python started, are no autograd threads.

    Nor is one that rests: a dump without names shows those that Python started like others.
    """
    main = thread("MainThread", ENGINE, USER)
    started = thread(
        None, WAIT, USER, Frame("_bootstrap", "/usr/lib/python3.11/threading.py", None, 9)
    )
    rests = thread(None, WAIT, REST)
    others = (thread(None, WAIT), thread("Thread-1", BARRIER), thread(None, NATIVE), started, rests)
    positions = Positions(LISTS)
    assert positions.thread(Process(pid=1, node="n", threads=(*others, main))) == main


@pytest.mark.parametrize("look_on", [(WAIT, JOIN, USER), (JOIN, USER), (REST, SCRIPT)])
def test_a_main_thread_that_looks_on(look_on: tuple[Frame, ...]) -> None:
    """Where it joins or rests, the only other thread with user code is the one that trains."""
    main, helper = thread("MainThread", *look_on), thread("Thread-1", WAIT, TQDM)
    trains = thread("Thread-2", BARRIER, USER)
    positions = Positions(LISTS)
    assert positions.thread(Process(pid=1, node="n", threads=(main, helper, trains))) == trains
    assert positions.thread(Process(pid=1, node="n", threads=(main, helper))) == main


def test_a_heartbeat_beside_a_main_thread_that_rests() -> None:
    """A thread in user code alone may only ping; one in a collective trains."""
    main, pings = thread("MainThread", REST, SCRIPT), thread("Thread-1", USER)
    positions = Positions(LISTS)
    assert positions.thread(Process(pid=1, node="n", threads=(main, pings))) == main
    joins = thread("MainThread", WAIT, JOIN, USER)
    assert positions.thread(Process(pid=1, node="n", threads=(joins, pings))) == pings


def test_a_main_thread_that_waits_for_its_pool() -> None:
    """Work that it gave to a pool counts where the rules know it, also without user code."""
    main = thread("MainThread", WAIT, RESULT, USER)
    saves, rests = thread("ThreadPoolExecutor-0_0", BARRIER, POOL), thread("pool-1", WAIT, POOL)
    elsewhere, own = thread("Thread-3", BARRIER), thread("pool-2", HELPER, POOL)
    positions = Positions(LISTS)
    threads = (main, rests, elsewhere, own)
    assert positions.thread(Process(pid=1, node="n", threads=(*threads, saves))) == saves
    assert positions.thread(Process(pid=1, node="n", threads=threads)) == main
    two = (*threads, saves, thread("ThreadPoolExecutor-0_1", BARRIER, POOL))
    assert positions.thread(Process(pid=1, node="n", threads=two)) == main


@pytest.mark.parametrize("frames", [(BARRIER, USER), (WAIT, USER), (USER, JOIN), (HELPER,), ()])
def test_a_main_thread_with_work_of_its_own(frames: tuple[Frame, ...]) -> None:
    """Whatever its other threads do, a main thread that does not wait for them matters."""
    main, other = thread("MainThread", *frames), thread("Thread-1", BARRIER, USER)
    process = Process(pid=1, node="n", threads=(main, other))
    assert Positions(LISTS).thread(process) == main


def test_a_library_that_waits_for_threads_of_its_own() -> None:
    """What a known library waits for is its own affair: the main thread says what it is."""
    main = thread("MainThread", WAIT, JOIN, BARRIER, USER)
    process = Process(pid=1, node="n", threads=(main, thread("Thread-1", USER)))
    assert Positions(LISTS).thread(process) == main


def test_nobody_guesses_for_which_thread_the_main_one_waits() -> None:
    """Of two threads with user code neither is taken."""
    main = thread("MainThread", WAIT, JOIN, USER)
    others = (thread("Thread-1", BARRIER, USER), thread("Thread-2", USER))
    process = Process(pid=1, node="n", threads=(main, *others))
    assert Positions(LISTS).thread(process) == main


def test_a_dump_without_names_shows_a_main_thread_by_its_script() -> None:
    """Only the main thread runs a script; a name anywhere says that the dump has names."""
    helper, main = thread(None, WAIT, TQDM), thread(None, BARRIER, USER, SCRIPT)
    positions = Positions(LISTS)
    assert positions.thread(Process(pid=1, node="n", threads=(helper, main))) == main
    named = (thread("Thread-1", WAIT, TQDM), thread(None, WAIT, TQDM), main)
    assert isinstance(positions.thread(Process(pid=1, node="n", threads=named)), Missing)
    twice = Process(pid=1, node="n", threads=(main, thread(None, USER, SCRIPT)))
    assert isinstance(positions.thread(twice), Missing)


def test_several_nameless_threads_are_unknown() -> None:
    """Nobody guesses which of two nameless threads trains."""
    process = Process(pid=1, node="a", threads=(thread(None, USER), thread(None, WAIT)))
    assert isinstance(Positions(LISTS).thread(process), Missing)


@pytest.mark.parametrize(
    ("filename", "short", "user"),
    [
        ("/srv/code/train.py", "train.py", True),
        ("/srv/code/datasets/shards.py", "datasets/shards.py", True),
        ("/srv/code/queue.py", "queue.py", True),
        ("~/code/queue.py", "queue.py", True),
        ("~/.pyenv/versions/3.11.7/lib/python3.11/queue.py", "queue.py", False),
        ("/sgl-workspace/sglang/python/sglang/srt/server.py", "sglang/srt/server.py", False),
        (f"{SITE}torch/_tensor.py", "torch/_tensor.py", False),
        ("/usr/lib/python3.11/threading.py", "threading.py", False),
        ("threading.py", None, False),
        ("torch/_tensor.py", None, False),
        ("train.py", None, True),
        ("<frozen runpy>", "<frozen runpy>", False),
        ("<string>", "<string>", False),
        (None, None, False),
    ],
)
def test_user_code(filename: str | None, short: str | None, user: bool) -> None:
    """User code lies under no package root and in no known library, in full and short paths."""
    assert is_user_code(Frame("f", filename, short, 1)) is user


def test_a_single_native_thread_is_the_one_that_matters() -> None:
    """A debugger's dump of a forked worker may show nothing but one nameless native thread."""
    alone = thread(None, NATIVE)
    process = Process(pid=1, node="n", threads=(alone,))
    assert Positions(LISTS).thread(process) == alone
    two = Process(pid=1, node="n", threads=(alone, thread(None, NATIVE)))
    assert isinstance(Positions(LISTS).thread(two), Missing)
