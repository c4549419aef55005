"""Headless Chromium for tests: opens a page, runs scripts in it, takes pictures. Speaks the DevTools protocol itself.

Uses the machine's own Chromium, Debian's package `chromium`; `make test` has tried to install it.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium")
NOTICE = "the web page is not tested in a browser: there is no chromium on this machine (make e2e-setup as root)"
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)
_WAIT_S = 30.0
_LISTENING = b"DevTools listening on "


def has_browser() -> bool:
    return CHROMIUM is not None


class OpenPage:
    """One tab."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.problems: list[str] = []
        """What went wrong in the page: exceptions, and what its security policy refused."""

    async def call(self, method: str, **params: Any) -> dict[str, Any]:
        wanted = next(self._ids)
        await self._socket.send_json({"id": wanted, "method": method, "params": params})
        while True:
            message = await self._socket.receive_json(timeout=_WAIT_S)
            self._note(message)
            if message.get("id") == wanted:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def _note(self, message: dict[str, Any]) -> None:
        if message.get("method") == "Runtime.exceptionThrown":
            details = message["params"]["exceptionDetails"]
            self.problems.append((details.get("exception") or {}).get("description") or details["text"])
        if message.get("method") == "Log.entryAdded" and message["params"]["entry"]["source"] == "security":
            self.problems.append(message["params"]["entry"]["text"])

    async def evaluate(self, script: str) -> Any:
        """What the script gives, once its promise is kept."""
        answer = await self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def wait_for(self, condition: str) -> Any:
        """Until the expression is true in the page; its value."""
        script = (
            "new Promise((resolve, reject) => { const started = Date.now(); const look = () => {"
            f" const found = (() => {{ try {{ return {condition}; }} catch {{ return null; }} }})();"
            " if (found) resolve(found); else if (Date.now() - started > 20000) reject(new Error('never true:"
            f" ' + {json.dumps(condition)})); else setTimeout(look, 20); }}; look(); }})"
        )
        return await self.evaluate(script)

    async def press(self, key: str) -> None:
        code = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowDown": 40}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            await self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    async def click(self, selector: str) -> None:
        """With the mouse, in the middle of the first element that fits."""
        at = await self.middle_of(selector)
        for kind in ("mousePressed", "mouseReleased"):
            await self.mouse(kind, at)

    async def mouse(self, kind: str, at: tuple[float, float]) -> None:
        await self.call("Input.dispatchMouseEvent", type=kind, x=at[0], y=at[1], button="left", clickCount=1)

    async def middle_of(self, selector: str) -> tuple[float, float]:
        """Once it is there, scrolled to where it is seen, and stays where it is for a moment."""
        before = None
        while True:
            left, top = await self.wait_for(
                f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                " e.scrollIntoView({block: 'nearest'});"
                " const box = e.getBoundingClientRect();"
                " return [box.left + box.width / 2, box.top + box.height / 2]; })()"
            )
            if before == (left, top):
                return left, top
            before = left, top
            await self.evaluate("new Promise((resolve) => setTimeout(resolve, 100))")

    async def screenshot(self, path: Path) -> None:
        answer = await self.call("Page.captureScreenshot", format="png")
        path.write_bytes(base64.b64decode(answer["data"]))


@asynccontextmanager
async def open_page(
    url: str, folder: Path, *, size: tuple[int, int] = (1440, 900), dark: bool = False, trusts_all: bool = False
) -> AsyncIterator[OpenPage]:
    """A browser with nothing in it but this page; `folder` must be new. `trusts_all` takes any certificate."""
    assert CHROMIUM is not None
    process = await asyncio.create_subprocess_exec(
        CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_WAIT_S):
            port = await _debugging_port(process)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                target = next(one for one in await answer.json() if one["type"] == "page")
            async with session.ws_connect(target["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                page = OpenPage(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await page.call(f"{domain}.enable")
                await page.call(
                    "Emulation.setDeviceMetricsOverride",
                    width=size[0],
                    height=size[1],
                    deviceScaleFactor=1,
                    mobile=False,
                )
                scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
                await page.call("Emulation.setEmulatedMedia", features=scheme)
                if trusts_all:
                    await page.call("Security.setIgnoreCertificateErrors", ignore=True)
                await page.call("Page.navigate", url=url)
                yield page
    finally:
        process.terminate()
        assert process.stderr is not None
        await process.stderr.read()
        await process.wait()


async def _debugging_port(process: asyncio.subprocess.Process) -> int:
    assert process.stderr is not None
    async for line in process.stderr:
        if line.startswith(_LISTENING):
            return int(line.removeprefix(_LISTENING).split(b"/")[2].rpartition(b":")[2])
    raise RuntimeError("Chromium ended before it began")
