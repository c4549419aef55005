"""Clusters to try rules on: small, crowded and ugly, so that every rule is met often (hypothesis).

Nodes may be over-committed, cordoned, tainted or lack labels; pods use what schedulers look at, in every combination.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kubesched.testing import make
from kubesched.testing.make import HOSTNAME, ZONE, Manifest

APPS = ("web", "api", "db")
_ZONES = ("a", "b", "c")
_IMAGES = {"example.com/app:1": 400_000_000, "example.com/app:2": 900_000_000}


def labels() -> st.SearchStrategy[dict[str, str]]:
    return st.fixed_dictionaries({}, optional={"app": st.sampled_from(APPS), "tier": st.sampled_from(("x", "y"))})


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Manifest:
    own = draw(st.fixed_dictionaries({}, optional={ZONE: st.sampled_from(_ZONES), "disk": st.sampled_from("12345")}))
    taints = draw(
        st.lists(
            st.builds(
                make.taint,
                st.sampled_from(("gpu", "spot")),
                effect=st.sampled_from(("NoSchedule", "PreferNoSchedule", "NoExecute")),
            ),
            max_size=2,
        )
    )
    return make.node(
        name,
        cpu=draw(st.integers(0, 8)),
        memory=f"{draw(st.integers(0, 8))}Gi",
        pods=draw(st.sampled_from((1, 3, 110))),
        labels=own,
        taints=taints,
        unschedulable=draw(st.sampled_from((False, False, False, True))),
        images={image: _IMAGES[image] for image in draw(st.sets(st.sampled_from(sorted(_IMAGES))))},
        allocatable=draw(st.sampled_from(({}, {"example.com/gpu": 2}))),
    )


def _spreads() -> st.SearchStrategy[list[Manifest]]:
    one = st.builds(
        make.spread,
        st.sampled_from((HOSTNAME, ZONE)),
        max_skew=st.integers(1, 2),
        hard=st.booleans(),
        labels=st.sampled_from(APPS).map(lambda app: {"app": app}),
    )
    return st.lists(one, max_size=2, unique_by=lambda c: (c["topologyKey"], c["whenUnsatisfiable"]))


def _terms() -> st.SearchStrategy[list[Manifest]]:
    apps = st.sampled_from(APPS).map(lambda app: {"app": app})
    return st.lists(st.builds(make.affinity_term, st.sampled_from((HOSTNAME, ZONE)), apps), max_size=1)


@st.composite
def _affinity(draw: st.DrawFn) -> Manifest:
    found: Manifest = {}
    for kind in ("podAffinity", "podAntiAffinity"):
        required, preferred = draw(_terms()), draw(_terms())
        part: Manifest = {}
        if required:
            part["requiredDuringSchedulingIgnoredDuringExecution"] = required
        if preferred:
            part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": draw(st.integers(1, 100)), "podAffinityTerm": term} for term in preferred
            ]
        if part:
            found[kind] = part
    if draw(st.booleans()):
        values = draw(st.lists(st.sampled_from("12345"), min_size=1, max_size=2, unique=True))
        expression = {"key": "disk", "operator": draw(st.sampled_from(("In", "NotIn"))), "values": values}
        found["nodeAffinity"] = {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [expression]}]
            }
        }
    return found


@st.composite
def pods(draw: st.DrawFn, name: str, on: st.SearchStrategy[str]) -> Manifest:
    spec: dict[str, Any] = {}
    if draw(st.integers(0, 2)) == 0:
        spec["affinity"] = draw(_affinity())
    constraints = draw(_spreads()) if draw(st.integers(0, 2)) == 0 else []
    if constraints:
        spec["topologySpreadConstraints"] = constraints
    if draw(st.booleans()):
        spec["tolerations"] = [make.toleration(draw(st.sampled_from(("gpu", "spot", ""))))]
    node = draw(on)
    leaving = bool(node) and draw(st.integers(0, 9)) == 0
    return make.pod(
        name,
        namespace=draw(st.sampled_from(("default", "shop"))),
        on=node,
        cpu=draw(st.sampled_from((None, "250m", "1", "2500m"))),
        memory=draw(st.sampled_from((None, "64Mi", "1Gi", "3Gi"))),
        requests=draw(st.sampled_from(({}, {}, {"example.com/gpu": 1}))),
        labels=draw(labels()),
        priority=draw(st.integers(-1, 3)),
        host_ports=draw(st.sampled_from(((), (), (80,), (80, 443)))),
        image=draw(st.sampled_from(sorted(_IMAGES))),
        started=f"2026-01-01T00:0{draw(st.integers(0, 9))}:00Z" if node else "",
        spec=spec,
        metadata={"deletionTimestamp": "2026-01-01T01:00:00Z"} if leaving else None,
    )


@st.composite
def clusters(draw: st.DrawFn, max_nodes: int = 5, max_pods: int = 8) -> list[Manifest]:
    """Nodes n0, n1, … with pods on them, perhaps a budget, and the pending pod default/pending or shop/pending."""
    names = [f"n{i}" for i in range(draw(st.integers(1, max_nodes)))]
    objects = [draw(nodes(name)) for name in names]
    where = st.sampled_from(names)
    objects += [draw(pods(f"p{i}", where)) for i in range(draw(st.integers(0, max_pods)))]
    objects.append(draw(pods("pending", st.just(""))))
    if draw(st.booleans()):
        app = draw(st.sampled_from(APPS))
        objects.append(make.budget("budget", {"app": app}, allowed=draw(st.integers(0, 1))))
    return objects


def pending_key(objects: list[Manifest]) -> str:
    """`namespace/name` of the pod to schedule in a cluster from `clusters`."""
    pending = next(o for o in objects if o["kind"] == "Pod" and o["metadata"]["name"] == "pending")
    return f"{pending['metadata']['namespace']}/pending"
