"""A server of a test's own, in a thread, on a free port of this host."""

from __future__ import annotations

import contextlib
import socket
import threading


class LocalServer:
    """Listens from the start; ``serve`` of a subclass accepts, until accepting fails.

    Connections in ``held`` are closed at the end.
    """

    def __init__(self, family: socket.AddressFamily = socket.AF_INET) -> None:
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
        self.listener.listen(16)
        self.port: int = self.listener.getsockname()[1]
        self.held: list[socket.socket] = []
        self._thread = threading.Thread(target=self.serve, daemon=True)
        self._thread.start()

    def serve(self) -> None:
        """Answer connections; runs in a thread of its own."""
        raise NotImplementedError

    def close(self) -> None:
        """Stop serving."""
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.held:
            connection.close()
        self._thread.join(5)
