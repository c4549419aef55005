"""However many nodes there are, only so many changes are tried."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kubesched.explanation.changes import what_if
from kubesched.explanation.changes.what_if import Action
from kubesched.simulator.asking import explain
from kubesched.testing import make
from kubesched.testing.make import ZONE, Manifest


def _cluster(n_nodes: int) -> list[Manifest]:
    nodes = [
        make.node(
            f"n{i}",
            cpu=1 + i % 7,
            labels={ZONE: f"z{i % 5}", "serial": str(i)},
            taints=[make.taint(f"owner-{i}")] if i % 3 == 0 else [],
            unschedulable=i % 4 == 0,
        )
        for i in range(n_nodes)
    ]
    pods = [make.pod(f"x{i}", on=f"n{i}", cpu=1, labels={"app": "web"}, priority=i % 11) for i in range(n_nodes)]
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [make.affinity_term("rack", {"app": "none"})]}
    spec = {"affinity": {"podAffinity": terms}, "nodeSelector": {"serial": "none"}}
    return [*nodes, *pods, make.pod("p", cpu=8, host_ports=(80,), spec=spec)]


@pytest.mark.parametrize("n_nodes", [20, 200])
def test_the_number_of_trials_does_not_grow_with_the_cluster(n_nodes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n_trials = 0
    fits_on = what_if.WhatIf.fits_on

    def counted(trial: what_if.WhatIf, actions: Iterable[Action]) -> tuple[str, ...]:
        nonlocal n_trials
        n_trials += 1
        return fits_on(trial, actions)

    monkeypatch.setattr(what_if.WhatIf, "fits_on", counted)
    assert explain(_cluster(n_nodes), "default/p").changes
    assert 0 < n_trials <= 60
