"""The faults that a rank of the lab's training job can run into, each a real one.

A fault either stands in the way of a step (``STEP_FAULTS``) or of a shard that a dataset reads
(``SHARD_FAULTS``). The functions are the training code that whyhang has to name.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Held by a thread of a rank while its workers are forked; see `taken_by_a_thread`.
CACHE_LOCK = threading.Lock()


def publish_metrics(_options: argparse.Namespace) -> None:
    """A callback of the user's that never comes back."""
    time.sleep(1_000_000)


def count_for_ever(_options: argparse.Namespace) -> None:
    """A loop in Python that has lost its end."""
    number = 0
    while True:
        number = (number * 31 + 7) % 1_000_003


def flush_logger(_options: argparse.Namespace) -> None:
    """Two threads that take two locks in opposite order."""
    buffer, sink = threading.Lock(), threading.Lock()
    taken = threading.Event()

    def drain() -> None:
        with sink:
            taken.set()
            time.sleep(0.2)
            with buffer:
                pass

    with buffer:
        threading.Thread(target=drain, name="drain", daemon=True).start()
        taken.wait()
        with sink:
            pass


def wait_in_c(_options: argparse.Namespace) -> None:
    """A C call that never returns; other threads of the rank may run."""
    ctypes.CDLL(None).pause()


def wait_in_c_with_gil(_options: argparse.Namespace) -> None:
    """A C call that never returns and keeps Python's global lock."""
    ctypes.PyDLL(None).pause()


def spin_in_c(options: argparse.Namespace) -> None:
    """A C loop that has lost its end."""
    ctypes.CDLL(str(options.native_library)).spin()


def run_tool(options: argparse.Namespace) -> None:
    """A vfork whose child neither ends nor executes: its parent sleeps uninterruptibly."""
    ctypes.CDLL(str(options.native_library)).vfork_and_wait()


def read_command(options: argparse.Namespace) -> None:
    """A named pipe that nobody writes to."""
    path: Path = options.workdir / "commands"
    os.mkfifo(path)
    # Opened for writing as well, or the open would wait instead of the read.
    os.read(os.open(path, os.O_RDWR), 1)


def ask_service(_options: argparse.Namespace) -> None:
    """A peer that takes the connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        peer, _address = server.accept()
        client.recv(1)
        peer.close()


def read_settings(options: argparse.Namespace) -> None:
    """A file on storage that has stopped answering."""
    (options.mount / "settings").read_bytes()


def wait_for_shard(_options: argparse.Namespace) -> None:
    """A shard that never comes: a read(2) of a pipe that is never written to."""
    reader, _writer = os.pipe()
    os.read(reader, 1)


def read_remote_shard(options: argparse.Namespace) -> None:
    """A shard on storage that has stopped answering."""
    (options.mount / "shard").read_bytes()


def wait_for_cache(_options: argparse.Namespace) -> None:
    """A lock that was held by somebody else when this process was forked."""
    with CACHE_LOCK:
        pass


# Named like the function that has to be found.
STEP_FAULTS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    fault.__name__: fault
    for fault in (
        publish_metrics,
        count_for_ever,
        flush_logger,
        wait_in_c,
        wait_in_c_with_gil,
        spin_in_c,
        run_tool,
        read_command,
        ask_service,
        read_settings,
    )
}
SHARD_FAULTS: Mapping[str, Callable[[argparse.Namespace], None]] = {
    fault.__name__: fault for fault in (wait_for_shard, wait_for_cache, read_remote_shard)
}


@contextmanager
def taken_by_a_thread(lock: threading.Lock) -> Iterator[None]:
    """The lock is held by a thread other than the caller's."""
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            over.wait()

    holder = threading.Thread(target=hold, name="prefetch")
    holder.start()
    taken.wait()
    try:
        yield
    finally:
        over.set()
        holder.join()
