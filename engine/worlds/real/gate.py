"""Who may send to a device that others can reach: both ends prove that they have the key of the run.

The one that opens a connection sends its rank and a nonce, the other a nonce and an HMAC over all of it, and
the first an HMAC in return (RFC 2104; as in ISO/IEC 9798-4's mutual authentication). Neither sends the key.
What follows is not encrypted.
"""

from __future__ import annotations

import hmac
import queue
import secrets
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress

NONCE_BYTES = 32
PROOF_BYTES = 32
PATIENCE_S = 5.0
MOST_AT_ONCE = 16
"""Connections that may be proving themselves; more are closed."""

_RANK = struct.Struct("<I")


class Stranger(OSError):
    """The other end has not proved that it is of this run."""


def open_gate(sock: socket.socket, key: bytes, rank: int) -> None:
    """Prove to a listener that this is device `rank`, and have it prove itself. Raises `OSError`."""
    asked = _RANK.pack(rank) + secrets.token_bytes(NONCE_BYTES)
    sock.sendall(asked)
    nonce = _exactly(sock, NONCE_BYTES)
    if not hmac.compare_digest(_exactly(sock, PROOF_BYTES), _proof(key, b"listens", asked + nonce)):
        raise Stranger("who listens there is not of this run")
    sock.sendall(_proof(key, b"opens", asked + nonce))


def let_in(sock: socket.socket, key: bytes) -> int:
    """The rank that the other end of an accepted connection has proved to be. Raises `OSError`."""
    asked, nonce = _exactly(sock, _RANK.size + NONCE_BYTES), secrets.token_bytes(NONCE_BYTES)
    sock.sendall(nonce + _proof(key, b"listens", asked + nonce))
    if not hmac.compare_digest(_exactly(sock, PROOF_BYTES), _proof(key, b"opens", asked + nonce)):
        raise Stranger("who calls is not of this run")
    return int(_RANK.unpack_from(asked)[0])


def _proof(key: bytes, who: bytes, said: bytes) -> bytes:
    return hmac.digest(key, who + said, "sha256")


def _exactly(sock: socket.socket, size: int) -> bytes:
    found = b""
    while len(found) < size:
        piece = sock.recv(size - len(found))
        if not piece:
            raise Stranger("the other end has hung up")
        found += piece
    return found


class Gate(threading.Thread):
    """Accepts connections of a listener and lets in who has the key: they are in `admitted`, with their rank.

    Threads, because two devices that open a connection to each other at once wait for each other's proof.
    """

    def __init__(self, listener: socket.socket, key: bytes, wake: Callable[[], None]):
        super().__init__(name="gate", daemon=True)
        self.listener, self.key, self.wake = listener, key, wake
        self.admitted: queue.SimpleQueue[tuple[socket.socket, int]] = queue.SimpleQueue()
        self.free = threading.BoundedSemaphore(MOST_AT_ONCE)
        self.start()

    def run(self) -> None:
        with suppress(OSError):  # the listener is closed
            while True:
                sock, _ = self.listener.accept()
                if not self.free.acquire(blocking=False):
                    sock.close()
                    continue
                threading.Thread(target=self._ask, args=(sock,), daemon=True).start()

    def close(self) -> None:
        """Accept nobody any more, and wait until nobody is proving anything."""
        with suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)  # ends `accept`, which closing does not
        self.listener.close()
        self.join()
        for _ in range(MOST_AT_ONCE):
            self.free.acquire()

    def _ask(self, sock: socket.socket) -> None:
        overdue = threading.Timer(PATIENCE_S, sock.shutdown, [socket.SHUT_RDWR])  # also of one that drips
        try:
            overdue.start()
            rank = let_in(sock, self.key)
        except OSError:
            sock.close()
        else:
            self.admitted.put((sock, rank))
            self.wake()
        finally:
            overdue.cancel()
            self.free.release()
