"""Large bodies are decoded beside the event loop, so that nobody else waits for them.

One thread for YAML, which takes a thousand times as long for each byte, and one for all else: whoever sends much YAML
delays only those who do the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LARGE_YAML_BYTES = 16 * 1024
LARGE_BYTES = 256 * 1024
"""From here on decoding takes longer than a change of threads."""

_yaml = ThreadPoolExecutor(1, "decoding YAML")
_others = ThreadPoolExecutor(1, "decoding")


async def decoded(data: bytes, content_type: str, decode: Callable[P, R], *arguments: P.args, **more: P.kwargs) -> R:
    """What ``decode`` makes of these arguments, in which ``data`` is."""
    is_yaml = "yaml" in content_type and data.lstrip()[:1] != b"{"
    if len(data) < (LARGE_YAML_BYTES if is_yaml else LARGE_BYTES):
        return decode(*arguments, **more)
    executor = _yaml if "yaml" in content_type else _others
    return await asyncio.get_running_loop().run_in_executor(executor, lambda: decode(*arguments, **more))
