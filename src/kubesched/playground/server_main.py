"""What runs in the API server's own process: serves until its standard input ends.

That ends when who started it wishes so, and also when he is no more: no server is left behind. One argument, the
settings as JSON. Next: `server_process`, which starts it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from kubesched.live.logs import configure_logs
from kubesched.playground.apiserver.server import ApiServer, ServerSettings
from kubesched.playground.apiserver.storage.data_directory import DataDirectoryError

SERVING = "serving on "


class ServerOrder(msgspec.Struct, frozen=True):
    """How to serve, and where to write the kubeconfig."""

    kubeconfig: str
    port: int
    bind_address: str
    data: str | None = None


def main(argument: str) -> int:
    order = msgspec.json.decode(argument, type=ServerOrder)
    data = None if order.data is None else Path(order.data)
    settings = ServerSettings(data, order.bind_address, order.port, mounts_tokens=True)
    configure_logs()
    try:
        asyncio.run(_serve(settings, Path(order.kubeconfig)))
    except DataDirectoryError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except OSError as problem:
        sys.stderr.write(f"cannot serve on {order.bind_address}:{order.port}: {problem.strerror or problem}\n")
        return 1
    return 0


async def _serve(settings: ServerSettings, kubeconfig: Path) -> None:
    server = ApiServer(settings)
    try:
        await server.start()
        server.write_kubeconfig(kubeconfig)
        sys.stderr.write(f"{SERVING}{server.url}\n")
        sys.stderr.flush()
        await _end_of_input()
    finally:
        await server.stop()


async def _end_of_input() -> None:
    reader = asyncio.StreamReader()
    events = asyncio.get_running_loop()
    transport, _ = await events.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    try:
        while await reader.read(1024):
            pass
    finally:
        transport.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
