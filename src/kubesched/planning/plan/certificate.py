"""The proof of a plan, and the check of a proof: whole numbers, no solver, no cluster.

A certificate holds the classes of pods and the options with their prices and room, what a pod of each class is taken
to be worth, and the plan. Whoever checks it recomputes how much value each machine can hold at most, what bound
follows, and what the plan costs. For a plan that is `exhausted`, the mixes that the scheduler refused are listed: all
cheaper mixes are enumerated again, and each must be ruled out by a cut or be among the refused ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from kubesched.k8s.model.meta import PodKey
from kubesched.planning.catalogue import CATALOGUE_VERSION
from kubesched.planning.plan.bounds import CostBound, best_machine, cost_bound, rounded_up
from kubesched.planning.plan.enumeration import Cut, cut_of, mixes_below
from kubesched.planning.plan.model import BuyingOption, FreeRoom, LimitRow, PackedClass, PackingModel, PlanError

KIND = "PlanCertificate"
_MOST_STEPS = 50_000
_MOST_NUMBERS = 5_000_000


def certificate_of(
    model: PackingModel,
    bound: CostBound,
    counts: Sequence[int],
    level: str,
    bound_cost: int,
    *,
    survive: str = "",
    cuts: Sequence[Cut] = (),
    refused: Sequence[Sequence[int]] = (),
    currency: str = "USD",
) -> dict[str, Any]:
    zones = sorted({zone for one in model.options for zone in one.zones})
    return {
        "apiVersion": CATALOGUE_VERSION,
        "kind": KIND,
        "currency": currency,
        "level": level,
        "resources": list(model.resources),
        "classes": [
            {"name": one.name, "pods": int(d), "requests": r.tolist()}
            for one, d, r in zip(model.classes, model.demand, model.requests, strict=True)
        ],
        "options": [
            {
                "name": one.name,
                "price": one.price,
                "capacity": model.capacity[k].tolist(),
                "fits": np.flatnonzero(model.fits[:, k]).tolist(),
                "count": int(counts[k]),
            }
            for k, one in enumerate(model.options)
        ],
        "existing": [{"capacity": room.capacity.tolist(), "most": room.most.tolist()} for room in model.existing],
        "limits": [
            {"name": row.name, "coefficients": row.coefficients.tolist(), "most": row.most} for row in model.limits
        ],
        "survive": {"what": survive, "zones": len(zones)} if survive else None,
        "cost": model.cost(counts),
        "bound": bound_cost,
        "values": list(bound.values),
        "limitValues": list(bound.limit_values),
        "weights": [list(one) for one in bound.weights],
        "cuts": [{"values": list(cut.values), "weights": [list(w) for w in cut.weights]} for cut in cuts],
        "refused": [list(one) for one in refused],
    }


@dataclass(frozen=True, slots=True)
class CertificateCheck:
    holds: bool
    text: str
    """One line: what is proven, or what does not hold."""


def check_certificate(record: Any, source: str = "") -> CertificateCheck:
    """Raises PlanError if it is no certificate."""
    read = _Reader(source)
    found = read.certificate(record)
    model, counts = found.model, found.counts
    cost = model.cost(counts)
    if cost != found.cost:
        return CertificateCheck(False, f"the plan costs {cost}, not {found.cost}")
    values = np.array(found.values, dtype=np.int64)
    limit_values = np.array(found.limit_values, dtype=np.int64)
    most = [
        best_machine(model, o, values, found.weights[o], most_steps=_MOST_STEPS).most for o in range(len(model.options))
    ]
    least = cost_bound(model, values, limit_values, most, found.weights).cost
    if found.survive == "zone" and found.n_zones > 1:
        least = ceil(least * found.n_zones / (found.n_zones - 1))
    elif found.survive == "node" and least and len(model.options):
        least += int(model.price.min())
    least = rounded_up(model, least)
    if least > cost:
        return CertificateCheck(False, f"the bound is {least}, above the cost {cost}: one of them is wrong")
    if found.level == "within":
        if least < found.bound:
            return CertificateCheck(False, f"the values prove {least}, not {found.bound}")
        gap = 100 * (cost - least) / least if least else 0.0
        return CertificateCheck(True, f"holds: cost {cost}, bound {least}: at most {gap:.2f} % above the optimum")
    if cost == least:
        return CertificateCheck(True, f"holds: cost {cost} is the bound; no set of machines does it for less")
    return _check_enumeration(found, cost)


def _check_enumeration(found: _Certificate, cost: int) -> CertificateCheck:
    cuts = [cut_of(found.model, np.array(v, dtype=np.int64), w) for v, w in found.cuts]
    below = mixes_below(found.model, cuts, cost) if cuts else None
    if below is None:
        return CertificateCheck(False, f"the values prove no bound of {cost}")
    refused = set(found.refused)
    missing = [one for one in below if one not in refused]
    if missing:
        named = {found.model.options[k].name: n for k, n in enumerate(missing[0]) if n}
        return CertificateCheck(False, f"a cheaper mix is neither ruled out nor refused: {named}")
    if below and found.level == "proven":
        return CertificateCheck(False, "cheaper mixes were refused by the scheduler: that is exhausted, not proven")
    if not below:
        return CertificateCheck(True, f"holds: no cheaper mix than {cost} can hold the pods")
    return CertificateCheck(
        True, f"holds: cost {cost}; of all cheaper mixes, the cuts rule out all but {len(below)}, listed as refused"
    )


@dataclass(frozen=True, slots=True)
class _Certificate:
    model: PackingModel
    counts: list[int]
    level: str
    cost: int
    bound: int
    values: list[int]
    limit_values: list[int]
    weights: list[tuple[int, ...]]
    cuts: list[tuple[list[int], tuple[tuple[int, ...], ...]]]
    refused: list[tuple[int, ...]]
    survive: str
    n_zones: int


class _Reader:
    """Reads a certificate that anybody may have written."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._n_read = 0

    def certificate(self, record: Any) -> _Certificate:
        if not isinstance(record, Mapping) or record.get("kind") != KIND:
            raise self._wrong("kind", f"{KIND} is expected")
        resources = record.get("resources")
        classes = self._list(record, "classes")
        options = self._list(record, "options")
        if not isinstance(resources, list):
            raise self._wrong("resources", "a list is expected")
        n, m, k = len(classes), len(options), len(resources)
        requests = [self._numbers(one, "requests", k) for one in classes]
        fits = np.zeros((n, m), dtype=np.bool_)
        for o, one in enumerate(options):
            for c in self._numbers(one, "fits", None):
                if c >= n:
                    raise self._wrong("options.fits", f"there is no class {c}")
                fits[c, o] = True
        model = PackingModel(
            tuple(PackedClass((PodKey(str(one.get("name"))),)) for one in classes),
            tuple(self._option(o, one) for o, one in enumerate(options)),
            tuple(str(name) for name in resources),
            np.array([self._number(one, "pods") for one in classes], dtype=np.int64),
            np.array(requests, dtype=np.int64).reshape(n, k),
            np.array([self._numbers(one, "capacity", k) for one in options], dtype=np.int64).reshape(m, k),
            fits,
            np.zeros((n, n), dtype=np.bool_),
            tuple(
                FreeRoom(1, np.array(self._numbers(one, "capacity", k)), np.array(self._numbers(one, "most", n)))
                for one in self._list(record, "existing")
            ),
            tuple(
                LimitRow(
                    str(one.get("name")),
                    np.array(self._numbers(one, "coefficients", m, signed=True)),
                    self._number(one, "most"),
                )
                for one in self._list(record, "limits")
            ),
        )
        survive = record.get("survive") or {}
        if not isinstance(survive, Mapping) or record.get("level") not in ("proven", "exhausted", "within"):
            raise self._wrong("level", "proven, exhausted or within is expected")
        return _Certificate(
            model,
            [self._number(one, "count") for one in options],
            str(record["level"]),
            self._number(record, "cost"),
            self._number(record, "bound"),
            self._numbers(record, "values", n),
            self._numbers(record, "limitValues", len(model.limits)),
            self._weights(record, m, k),
            [(self._numbers(one, "values", n), tuple(self._weights(one, m, k))) for one in self._list(record, "cuts")],
            [tuple(self._plain(one, "refused", m)) for one in self._list(record, "refused", of=list)],
            str(survive.get("what") or ""),
            int(survive.get("zones") or 0),
        )

    def _option(self, number: int, record: Mapping[str, Any]) -> BuyingOption:
        return BuyingOption(str(record.get("name")), (number,), ("",), self._number(record, "price"), (None,))

    def _weights(self, record: Mapping[str, Any], m: int, k: int) -> list[tuple[int, ...]]:
        rows = self._list(record, "weights", of=list)
        if len(rows) != m:
            raise self._wrong("weights", f"{m} rows are expected, not {len(rows)}")
        return [tuple(self._plain(row, "weights", k)) for row in rows]

    def _list(self, record: Mapping[str, Any], field: str, of: type = Mapping) -> list[Any]:
        found = record.get(field)
        if not isinstance(found, list) or not all(isinstance(one, of) for one in found):
            raise self._wrong(field, "a list is expected")
        return found

    def _number(self, record: Mapping[str, Any], field: str) -> int:
        found = record.get(field)
        if not isinstance(found, int) or isinstance(found, bool) or not 0 <= found < 2**62:
            raise self._wrong(field, f"a whole number is expected, not {found!r}")
        return found

    def _numbers(self, record: Mapping[str, Any], field: str, n: int | None, *, signed: bool = False) -> list[int]:
        return self._plain(record.get(field), field, n, signed=signed)

    def _plain(self, found: Any, field: str, n: int | None, *, signed: bool = False) -> list[int]:
        if not isinstance(found, list) or (n is not None and len(found) != n):
            raise self._wrong(field, f"a list of {n if n is not None else 'whole'} numbers is expected")
        self._n_read += len(found)
        if self._n_read > _MOST_NUMBERS:
            raise self._wrong(field, f"more than {_MOST_NUMBERS:,} numbers")
        for one in found:
            if not isinstance(one, int) or isinstance(one, bool) or (one < 0 and not signed) or abs(one) >= 2**62:
                raise self._wrong(field, f"a whole number is expected, not {one!r}")
        return found

    def _wrong(self, field: str, problem: str) -> PlanError:
        return PlanError(": ".join(part for part in (self._source, field, problem) if part))
