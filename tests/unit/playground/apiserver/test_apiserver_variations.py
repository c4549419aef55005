"""The recorded scenarios with other, missing, added and wrong values are answered as kube-apiserver v1.36.4 did."""

from __future__ import annotations

import asyncio
import gzip
import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from apiserver_serving import running
from replayed_exchanges import Replay

from kubesched.playground.apiserver.verbs import read

_DATA = Path(__file__).parents[3] / "data" / "apiserver_variations" / "variations.jsonl.gz"
_LEAST_ALIKE = 0.97


def _scenarios() -> dict[str, list[dict[str, Any]]]:
    exchanges = map(json.loads, gzip.decompress(_DATA.read_bytes()).splitlines())
    return {name: list(group) for name, group in groupby(exchanges, key=lambda one: one["scenario"])}


def _differing(exchanges: list[dict[str, Any]]) -> dict[int, str]:
    async def body() -> dict[int, str]:
        async with running() as client:
            return await Replay(client).run(exchanges)

    return asyncio.run(body())


def test_variations_are_answered_as_by_the_real_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "_FUTURE_WAIT_S", 0.05)  # who asks for a version of the future waits for it
    worse: list[str] = []
    better: list[str] = []
    n_exchanges = n_alike = 0
    for name, exchanges in _scenarios().items():
        differing = _differing(exchanges)
        known = {one["step"] for one in exchanges if one.get("differs")}
        worse += [f"{name} {step} {text}" for step, text in differing.items() if step not in known]
        better += [f"{name} {step}" for step in sorted(known - differing.keys())]
        n_exchanges += len(exchanges)
        n_alike += len(exchanges) - len(differing)
    assert not worse, "\n".join(worse)
    assert not better, f"answered alike now: {better}"
    assert n_alike >= _LEAST_ALIKE * n_exchanges
