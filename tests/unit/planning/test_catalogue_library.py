"""Catalogues from Python: whatever takes one takes a file, a document or one that was read before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kubesched
from kubesched.testing import make

EXAMPLES = Path(__file__).parents[3] / "examples"
MACHINES = EXAMPLES / "plan" / "catalogue.yaml"
CLUSTER = EXAMPLES / "consolidate"


def document(name: str = "big", **fields: Any) -> dict[str, Any]:
    offers = [{"zone": "a", "capacityType": "spot", "price": 0.1}, {"zone": "b", "price": 0.3}]
    shape = {"name": name, "allocatable": {"cpu": 8, "memory": "32Gi", "pods": 110}, "offers": offers, **fields}
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": [shape]}


def test_a_path_a_text_a_document_and_a_catalogue_mean_the_same() -> None:
    read = kubesched.catalogue(MACHINES)
    for given in (MACHINES, str(MACHINES), read.to_dict(), read):
        found = kubesched.consolidate(CLUSTER, given, tie_break="name", policy="karpenter")
        assert found.currency == "USD"
        assert kubesched.upgrade(CLUSTER, catalogue=given, to_shape="medium", tie_break="name").finishes
        assert kubesched.optimal(CLUSTER, given).least_cost == kubesched.optimal(CLUSTER, read).least_cost


def test_several_are_one(tmp_path: Path) -> None:
    prices = tmp_path / "prices.csv"
    prices.write_text("instanceType,zone,capacityType,hourly\nbig,,,0.5\n")
    both = kubesched.catalogue(document(), document("huge"), prices=prices)
    assert [one.name for one in both.shapes] == ["big", "huge"]
    assert {offer.price for offer in both["big"].offers} == {5 * 10**8}
    with pytest.raises(kubesched.CatalogueError, match="a file or a document is needed"):
        kubesched.catalogue()


def test_a_shape_becomes_a_node_to_try() -> None:
    machines = kubesched.catalogue(document(labels={"kubernetes.io/arch": "arm64"}))
    world = kubesched.world([make.node("old", cpu=1), make.pod("web", cpu=4, spec={"nodeSelector": {make.ZONE: "b"}})])
    with world.trial() as trial:
        assert trial.settle().pending
        name = trial.add_node(machines["big"].node(zone="b"))
        assert trial.settle().placed == {"default/web": name}
        labels = trial.world.node(name).labels
    assert labels["node.kubernetes.io/instance-type"] == "big"
    assert labels["kubernetes.io/arch"] == "arm64"
    spot = machines["big"].node(capacity_type="spot", name="mine")
    assert (spot.name, spot.labels[make.ZONE], spot.labels["kubernetes.io/hostname"]) == ("mine", "a", "mine")
    with pytest.raises(kubesched.CatalogueError, match="shape big: there is no offer in zone c"):
        machines["big"].node(zone="c")
