"""CarbonAware: prefers nodes where electricity is clean now, by a table of grams of CO2 per kWh and zone.

The table is JSON (`{"eu-north-1a": 25, "us-east-1a": 380}`) in a file or behind a URL: whatever writes it, a forecast
service or a cron job. It is read again every `refresh_s` seconds in the background; no decision waits for it. A table
that cannot be read counts for `max_age_s` more, then all zones are alike.
"""

from __future__ import annotations

import json
import logging
import threading
import time
import urllib.request
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

import numpy as np

from kubesched.framework import CycleState, NodeTable, PodInfo, Scores

log = logging.getLogger("carbon_aware")

UNKNOWN = 50
LARGEST_TABLE_BYTES = 2**20


@dataclass(frozen=True)
class CarbonAwareArgs:
    source: str = ""
    """A path, or an address that begins with http:// or https://. Without one, all zones are alike."""
    zone_label: str = "topology.kubernetes.io/zone"
    dirtiest: float = 800.0
    """Grams per kWh from which on a zone gets no points."""
    refresh_s: float = 60.0
    timeout_s: float = 2.0
    max_age_s: float = 3600.0

    def __post_init__(self) -> None:
        if min(self.dirtiest, self.refresh_s, self.timeout_s, self.max_age_s) <= 0:
            raise ValueError("dirtiest, refreshS, timeoutS and maxAgeS must be above 0")


class CarbonAware:
    name = "CarbonAware"
    args_type = CarbonAwareArgs
    default_weight = 3

    def __init__(self, args: CarbonAwareArgs) -> None:
        self.args = args
        self.grams = grams_of(args) if args.source else None

    def score(self, cycle: CycleState, pod: PodInfo, nodes: NodeTable) -> Scores:
        """Asked once per zone, however many nodes there are; a pod that says so stays out of it."""
        known: Mapping[str, float] = {} if self.grams is None else self.grams.current
        if not known or pod.labels.get("carbon-aware") == "false":
            return np.full(len(nodes), UNKNOWN)
        return nodes.label(self.args.zone_label).measure(lambda zone: self._points(known, zone))

    def _points(self, known: Mapping[str, float], zone: str | None) -> int:
        if zone is None or zone not in known:
            return UNKNOWN
        return round(100 * (1 - min(max(known[zone], 0.0) / self.args.dirtiest, 1.0)))


class FreshTable:
    """What was read last; empty once that is too old. `current` is replaced, never changed: no lock is needed."""

    def __init__(
        self, read: Callable[[], Mapping[str, float]], max_age_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.current: Mapping[str, float] = {}
        self._read = read
        self._max_age_s = max_age_s
        self._clock = clock
        self._read_at_s = -max_age_s

    def refresh(self) -> bool:
        """Whether the table could be read."""
        try:
            self.current = self._read()
        except (OSError, ValueError, HTTPException) as problem:
            log.warning("carbon intensities were not read: %s", problem)
            if self._clock() - self._read_at_s > self._max_age_s:
                self.current = {}
            return False
        self._read_at_s = self._clock()
        return True

    def keep_fresh(self, every_s: float) -> None:
        self.refresh()
        own = weakref.ref(self)
        threading.Thread(target=_refresh_while_used, args=(own, every_s), daemon=True, name="carbon_aware").start()


def _refresh_while_used(table: weakref.ref[FreshTable], every_s: float) -> None:
    while True:
        time.sleep(every_s)
        used = table()
        if used is None:
            return  # nobody looks any more: the plugin was replaced, or its scheduler is gone
        used.refresh()
        del used


_TABLES: weakref.WeakValueDictionary[CarbonAwareArgs, FreshTable] = weakref.WeakValueDictionary()


def grams_of(args: CarbonAwareArgs) -> FreshTable:
    """One thread for all profiles that read the same. It ends with the last of them."""
    table = _TABLES.get(args)
    if table is None:
        table = _TABLES[args] = FreshTable(lambda: read_grams(args), args.max_age_s)
        table.keep_fresh(args.refresh_s)
    return table


def read_grams(args: CarbonAwareArgs) -> dict[str, float]:
    """Grams of CO2 per kWh, by zone. Raises OSError, HTTPException, or ValueError for what is no such table."""
    if args.source.startswith(("http://", "https://")):
        with urllib.request.urlopen(args.source, timeout=args.timeout_s) as answer:
            text = answer.read(LARGEST_TABLE_BYTES)
    else:
        text = Path(args.source).read_bytes()
    table = json.loads(text)
    if not isinstance(table, dict) or not all(isinstance(grams, int | float) for grams in table.values()):
        raise ValueError(f"{args.source}: a number of grams by zone is expected")
    return {zone: float(grams) for zone, grams in table.items()}
