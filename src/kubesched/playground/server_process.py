"""The API server in a process of its own, beside everything else: two processors do more than one.

It writes the kubeconfig and says where it serves. It does not hear Ctrl-C itself: who started it stops it, last of all,
by closing its standard input; should that process be killed, it ends, too, so that no server is left behind.

Run as a module it is the server: one argument, the settings as JSON.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from pathlib import Path

import msgspec

from kubesched.live.logs import configure_logs
from kubesched.playground.apiserver.server import ApiServer, ServerSettings, ease_collector
from kubesched.playground.apiserver.storage.sqlite import DataDirectoryError

START_WITHIN_S = 60.0
STOP_WITHIN_S = 10.0

_LINES_KEPT = 20


class ServerProcessError(OSError):
    """The server did not start: says what it said."""


class ServerProcess:
    def __init__(self, settings: ServerSettings, kubeconfig: Path) -> None:
        self._settings = settings
        self._kubeconfig = kubeconfig
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._said: deque[str] = deque(maxlen=_LINES_KEPT)
        self.url = ""

    async def start(self) -> None:
        """Returns when requests are answered. Raises ServerProcessError."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command(), stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, start_new_session=True
        )
        try:
            async with asyncio.timeout(START_WITHIN_S):
                await self._until_serving(self._process)
        except TimeoutError:
            raise ServerProcessError(f"the API server did not start within {START_WITHIN_S:g} s") from None
        self._reading = asyncio.create_task(self._pass_on(self._process), name="what the API server says")

    async def stop(self) -> None:
        """By asking, and if that does not help, by force."""
        process = self._process
        if process is not None and process.stdin is not None:
            process.stdin.close()
            try:
                async with asyncio.timeout(STOP_WITHIN_S):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()
        if self._reading is not None:
            await self._reading

    async def wait(self) -> None:
        """Until it has ended, for whatever reason."""
        if self._process is not None:
            await self._process.wait()

    def _command(self) -> list[str]:
        settings = self._settings
        data = None if settings.data is None else str(settings.data)
        order = ServerOrder(str(self._kubeconfig), settings.port, settings.bind_address, settings.version, data)
        return [sys.executable, "-m", "kubesched.playground.server_process", msgspec.json.encode(order).decode()]

    async def _until_serving(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := (await process.stderr.readline()).decode(errors="replace").rstrip():
            if line.startswith(SERVING):
                self.url = line.removeprefix(SERVING)
                return
            self._said.append(line)
        await process.wait()
        why = self._said[-1] if self._said else f"exit code {process.returncode}"
        raise ServerProcessError(f"the API server did not start: {why}")

    async def _pass_on(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        while line := await process.stderr.readline():
            sys.stderr.write(line.decode(errors="replace"))


SERVING = "serving on "


class ServerOrder(msgspec.Struct, frozen=True):
    """How to serve, and where to write the kubeconfig."""

    kubeconfig: str
    port: int
    bind_address: str
    version: str
    data: str | None = None


def main(argument: str) -> int:
    order = msgspec.json.decode(argument, type=ServerOrder)
    data = None if order.data is None else Path(order.data)
    settings = ServerSettings(data, order.bind_address, order.port, version=order.version, mounts_tokens=True)
    configure_logs()
    try:
        asyncio.run(_serve(settings, Path(order.kubeconfig)))
    except DataDirectoryError as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    except OSError as problem:
        sys.stderr.write(f"{settings.why_not_serving(problem)}\n")
        return 1
    return 0


async def _serve(settings: ServerSettings, kubeconfig: Path) -> None:
    server = ApiServer(settings)
    try:
        await server.start()
        server.write_kubeconfig(kubeconfig)
        ease_collector()
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
