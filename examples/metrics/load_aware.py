"""LoadAware: prefers nodes whose measured load is low, by an instant query to a Prometheus-like server.

No decision ever waits for the server. A thread asks it every `refresh_s` seconds, with a timeout, and puts what it
found in place of what was known before; a decision reads what is there. Once the last answer is older than `max_age_s`,
it is dropped, and all nodes are alike until there is a new one. A node of which nothing is known gets the middle score.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.parse
import urllib.request
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException

import numpy as np

from kubesched.framework import CycleState, NodeTable, PodInfo, Scores

log = logging.getLogger("load_aware")

NEUTRAL = 50
LARGEST_ANSWER_BYTES = 16 * 2**20
QUERY = 'avg by (node) (1 - rate(node_cpu_seconds_total{mode="idle"}[5m]))'


@dataclass(frozen=True)
class LoadAwareArgs:
    url: str = ""
    """Of the server, such as http://prometheus.monitoring:9090; without one, all nodes are alike."""
    query: str = QUERY
    """Its answer is a vector: a number from 0 (idle) to 1 (busy) per node."""
    node_label: str = "node"
    """The label of the answer that has the node's name."""
    refresh_s: float = 15.0
    timeout_s: float = 2.0
    max_age_s: float = 60.0

    def __post_init__(self) -> None:
        if min(self.refresh_s, self.timeout_s, self.max_age_s) <= 0:
            raise ValueError("refreshS, timeoutS and maxAgeS must be above 0")
        if self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError("url must begin with http:// or https://")


class LoadAware:
    name = "LoadAware"
    args_type = LoadAwareArgs
    default_weight = 2

    def __init__(self, args: LoadAwareArgs) -> None:
        self.loads = loads_of(args) if args.url else None

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        known: Mapping[str, float] = {} if self.loads is None else self.loads.current
        if not known:
            return np.full(len(nodes), NEUTRAL)
        neutral = 1 - NEUTRAL / 100
        loads = np.fromiter((known.get(name, neutral) for name in nodes.names), np.float64, len(nodes))
        return np.rint(100 * (1 - np.clip(loads, 0, 1))).astype(np.int64)


class FreshValues:
    """What a fetch found last; empty once that is too old. `current` is replaced, never changed: no lock is needed."""

    def __init__(
        self,
        fetch: Callable[[], Mapping[str, float]],
        max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.current: Mapping[str, float] = {}
        self._fetch = fetch
        self._max_age_s = max_age_s
        self._clock = clock
        self._fetched_at_s = -max_age_s

    def refresh(self) -> bool:
        """Whether the server answered."""
        try:
            self.current = self._fetch()
        except (OSError, ValueError, HTTPException) as problem:
            log.warning("metrics were not read: %s", problem)
            if self._clock() - self._fetched_at_s > self._max_age_s:
                self.current = {}
            return False
        self._fetched_at_s = self._clock()
        return True

    def keep_fresh(self, every_s: float) -> None:
        """Once now, so that the first decision knows something; then in the background, as long as somebody looks."""
        self.refresh()
        own = weakref.ref(self)
        threading.Thread(target=_refresh_while_used, args=(own, every_s), daemon=True, name="load_aware").start()


def _refresh_while_used(values: weakref.ref[FreshValues], every_s: float) -> None:
    while True:
        time.sleep(every_s)
        used = values()
        if used is None:
            return  # nobody looks any more: the plugin was replaced, or its scheduler is gone
        used.refresh()
        del used


_LOADS: weakref.WeakValueDictionary[LoadAwareArgs, FreshValues] = weakref.WeakValueDictionary()


def loads_of(args: LoadAwareArgs) -> FreshValues:
    """One thread for all profiles that ask the same. It ends with the last of them."""
    values = _LOADS.get(args)
    if values is None:
        values = _LOADS[args] = FreshValues(lambda: fetch_loads(args), args.max_age_s)
        values.keep_fresh(args.refresh_s)
    return values


def fetch_loads(args: LoadAwareArgs) -> dict[str, float]:
    """Load by node name. Raises OSError, HTTPException, or ValueError for an answer that is no vector."""
    address = f"{args.url.rstrip('/')}/api/v1/query?{urllib.parse.urlencode({'query': args.query})}"
    with urllib.request.urlopen(address, timeout=args.timeout_s) as answer:
        body = json.loads(answer.read(LARGEST_ANSWER_BYTES))
    try:
        samples = [
            (sample["metric"].get(args.node_label), float(sample["value"][1])) for sample in body["data"]["result"]
        ]
    except (KeyError, IndexError, TypeError, AttributeError) as problem:
        raise ValueError(f"{args.url}: the answer is not a vector: {problem!r}") from None
    return {node: load for node, load in samples if node and np.isfinite(load)}
