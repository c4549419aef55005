"""Catalogues of every form, and what is wrong with those that cannot be read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from kubesched.k8s.errors import KubeschedError
from kubesched.k8s.model.core import Node
from kubesched.k8s.model.resource import ResourceSlice
from kubesched.k8s.model.storage import CSINode
from kubesched.planning.catalogue import Catalogue, price_text, read_price
from kubesched.planning.catalogue_files import catalogue_from, read_catalogue, together, with_prices
from kubesched.planning.new_nodes import manifest_of, node_from_offer, sample_node
from kubesched.planning.reserves import reserved

EXAMPLE = Path(__file__).parents[3] / "examples" / "plan" / "catalogue.yaml"
GI = 1 << 30


def own(*shapes: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kubesched.dev/v1alpha1", "kind": "Catalogue", "shapes": list(shapes), **fields}


def shape(**fields: Any) -> dict[str, Any]:
    return {"name": "m", "capacity": {"cpu": 4, "memory": "16Gi"}, **fields}


def test_prices_are_exact() -> None:
    assert read_price(0.1) + read_price("0.2") == read_price(0.3) == 300_000_000
    assert price_text(read_price(0.2016)) == "0.2016"
    assert price_text(read_price(3)) == "3.0"


def test_the_example_becomes_nodes() -> None:
    found = read_catalogue(str(EXAMPLE))
    gpu = next(option for option in found.options() if option.shape.name == "gpu")
    (node,) = node_from_offer(gpu, 1)
    assert isinstance(node, Node)
    assert node.name == "new-gpu-b-on-demand-1"
    assert node.labels["topology.kubernetes.io/zone"] == "b"
    assert node.labels["node.kubernetes.io/instance-type"] == "gpu"
    assert node.labels["kubernetes.io/hostname"] == node.name
    assert [taint.key for taint in node.spec.taints or ()] == ["nvidia.com/gpu"]
    assert (node.status.allocatable or {})["cpu"] == "7910m"
    assert (node.status.capacity or {})["cpu"] == "8"


def test_written_and_read_again_it_is_the_same() -> None:
    found = read_catalogue(str(EXAMPLE))
    again = catalogue_from(json.loads(json.dumps(found.to_dict())), found.source)
    assert again == found


def test_volume_limits_become_a_csi_node() -> None:
    option = next(catalogue_from(own(shape(volumeLimits={"ebs.csi.aws.com": 27}))).options())
    _, csi = node_from_offer(option, 3)
    assert isinstance(csi, CSINode)
    (driver,) = csi.spec.drivers
    assert driver.allocatable is not None
    assert (driver.name, driver.allocatable.count) == ("ebs.csi.aws.com", 27)


def test_devices_become_slices_of_the_node() -> None:
    of_driver = {"driver": "gpu.example.com", "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "a"}}}]}
    of_other = {"driver": "nic.example.com", "devices": [{"name": "nic-0"}]}
    second = {**of_driver, "devices": [{"name": "gpu-1"}]}
    found = catalogue_from(own(shape(devices=[of_driver, second, of_other], price=1)))
    assert catalogue_from(json.loads(json.dumps(found.to_dict()))) == found
    node, *slices = node_from_offer(next(found.options()), 3)
    assert all(isinstance(one, ResourceSlice) for one in slices)
    records = [manifest_of(one) for one in slices]
    assert {record["spec"]["nodeName"] for record in records} == {node.name}
    assert len({record["metadata"]["name"] for record in records}) == 3
    assert [(r["spec"]["driver"], r["spec"]["pool"]) for r in records] == [
        ("gpu.example.com", {"name": node.name, "generation": 1, "resourceSliceCount": 2}),
        ("gpu.example.com", {"name": node.name, "generation": 1, "resourceSliceCount": 2}),
        ("nic.example.com", {"name": node.name, "generation": 1, "resourceSliceCount": 1}),
    ]
    sample, *others = sample_node(next(found.options()), 3)
    assert isinstance(others[0], ResourceSlice)
    assert others[0].spec.node_name == sample.name != node.name


@pytest.mark.parametrize(
    ("formula", "cpu", "memory"),
    [
        ("none", 0, 0),
        # 25 % of 4 GiB, 20 % of 4 GiB, 10 % of 8 GiB; 6 % of a core, 1 % of one, 0.5 % of two
        ("gke", 80, (GI + 8 * GI // 10 + 8 * GI // 10) + 100 * (1 << 20)),
        ("eks", 80, (255 + 11 * 58 + 100) * (1 << 20)),
        ("aks", 140, (20 * 58 + 50) * 1_000_000 + 100 * (1 << 20)),
    ],
)
def test_reserves(formula: str, cpu: int, memory: int) -> None:
    found = reserved(formula, 4000, 16 * GI, 58)
    assert found[0] == cpu
    assert abs(found[1] - memory) <= 2


def test_karpenter_types_for_kwok() -> None:
    entry = {
        "name": "c-1x-amd64-linux",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "1", "memory": "2Gi", "pods": "16"},
        "offerings": [
            {
                "Price": 0.019,
                "Available": available,
                "Requirements": [
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]},
                ],
            }
            for zone, available in (("a", True), ("b", False))
        ],
    }
    (option,) = catalogue_from([entry]).options()
    assert (option.offer.zone, option.offer.capacity_type, option.offer.price) == ("a", "spot", 19_000_000)
    assert dict(option.shape.allocatable) == {"cpu": "900m", "memory": "2038Mi", "pods": "16"}


def test_nodes_that_are_alike_are_one_shape_with_an_offer_for_each_zone() -> None:
    def node(name: str, zone: str, cpu: str = "4") -> dict[str, Any]:
        labels = {"topology.kubernetes.io/zone": zone, "kubernetes.io/hostname": name}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels, "annotations": {"kubesched.dev/price": "0.5"}},
            "spec": {"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": cpu, "memory": "8Gi"}},
        }

    found = catalogue_from([node("w-1", "a"), node("w-2", "b"), node("w-3", "a"), node("w-4", "a", "8")])
    assert [(one.name, [offer.zone for offer in one.offers]) for one in found.shapes] == [
        ("w", ["a", "b"]),
        ("w-2", ["a"]),
    ]
    assert {offer.price for one in found.shapes for offer in one.offers} == {500_000_000}
    assert not any(one.taints for one in found.shapes)


def test_pools_take_what_meets_their_requirements() -> None:
    pools = [
        {"name": "arm", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]},
        {
            "name": "rest",
            "labels": {"team": "shop"},
            "taints": [{"key": "t", "effect": "NoSchedule"}],
            "limits": {"nodes": 3},
        },
    ]
    (option,) = catalogue_from(own(shape(labels={"kubernetes.io/arch": "amd64"}), pools=pools)).options()
    assert option.pool.name == "rest"
    assert option.labels["team"] == "shop"
    assert option.pool.most_nodes == 3


def test_prices_from_a_csv_file(tmp_path: Path) -> None:
    found = catalogue_from(own(shape(offers=[{"zone": "a"}, {"zone": "b"}])))
    ours, kubecost = tmp_path / "ours.csv", tmp_path / "kubecost.csv"
    ours.write_text("instanceType,zone,capacityType,hourly\nm,,,0.2\nm,b,,0.3\nother,,,nonsense\n")
    kubecost.write_text("EndTimestamp,InstanceType,MarketPriceHourly\nnow,m,0.4\n")
    assert [offer.price for offer in with_prices(found, str(ours)).shapes[0].offers] == [200_000_000, 300_000_000]
    assert {offer.price for offer in with_prices(found, str(kubecost)).shapes[0].offers} == {400_000_000}


def test_a_compressed_file_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "c.json.gz"
    path.write_bytes(gzip.compress(json.dumps(own(shape(price=1))).encode()))
    assert [offer.price for offer in read_catalogue(str(path)).shapes[0].offers] == [10**9]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (own(shape(price=-1)), "c.yaml: shape m: offers[0].price: -1 is negative"),
        (own(shape(price="much")), "c.yaml: shape m: offers[0].price: 'much' is not a number"),
        (own(shape(price=float("nan"))), "c.yaml: shape m: offers[0].price: nan is not a number"),
        (own(shape(offers=[{"prize": 1}])), "c.yaml: shape m: offers[0]: Object contains unknown field `prize`"),
        (own(shape(offers=[{"available": -1}])), "c.yaml: shape m: offers[0].available: -1 is negative"),
        (own({"name": "m"}), "c.yaml: shape m: capacity: missing, and so is allocatable"),
        (own({"name": "m", "capacity": {"cpu": 1}}), "c.yaml: shape m: capacity.memory: missing"),
        (own(shape(devices=[{"devices": []}])), "c.yaml: shape m: devices[0].driver: must not be empty"),
        (own(shape(devices=[{"driver": "d"}])), "c.yaml: shape m: devices[0].devices: none is there"),
        (
            own(shape(devices=[{"driver": "d", "allNodes": True, "devices": [{"name": "a"}]}])),
            "c.yaml: shape m: devices[0]: devices of a machine are for its own node; name no node",
        ),
        (
            own(shape(devices=[{"driver": "d", "devices": [{"name": "a"}, {"name": "a"}]}])),
            "c.yaml: shape m: devices[0].devices: two have the same name",
        ),
        (own(shape(), shape()), "c.yaml: shape m: name: there are two of this name"),
        (own(shape(), reserve="all"), "c.yaml: reserve: one of none, gke, eks, aks is expected, not all"),
        (own(), "c.yaml: no shape in it"),
        (
            own(shape(), pools=[{"name": "p", "limits": {"cpu": -3}}]),
            "c.yaml: pool p: limits.cpu: -3 is negative",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_shape_and_field(document: dict[str, Any], problem: str) -> None:
    with pytest.raises(KubeschedError) as caught:
        catalogue_from(document, "c.yaml")
    assert str(caught.value) == problem


@pytest.mark.parametrize("document", [{}, [], 3, {"kind": "Pod"}, [[]], "x"])
def test_what_is_no_catalogue_is_told(document: Any) -> None:
    with pytest.raises(KubeschedError, match="not a catalogue"):
        catalogue_from(document, "c.yaml")


def test_catalogues_of_different_currencies_do_not_mix() -> None:
    dollars, euros = catalogue_from(own(shape()), "a"), catalogue_from(own(shape(name="n"), currency="EUR"), "b")
    with pytest.raises(KubeschedError, match="b: currency: EUR, while a has USD"):
        together([dollars, euros])


def test_an_unknown_shape_is_told_with_the_nearest() -> None:
    found: Catalogue = read_catalogue(str(EXAMPLE))
    with pytest.raises(KubeschedError, match='no shape is called "larg" \\(did you mean "large"\\?\\)'):
        found.only(["larg"])
