"""ImageLocality: what images on a node are worth."""

from __future__ import annotations

from typing import Any

import pytest
from small_clusters import NO_HANDLE, node, pod_info, table

from kubesched.framework import CycleState
from kubesched.k8s.model.core import Node
from kubesched.scheduler.plugins.image_locality import ImageLocality, normalized_image_name

PLUGIN = ImageLocality(None, NO_HANDLE)
MIB = 1024 * 1024


def node_with(name: str, **mib_by_image: float) -> Node:
    images = [{"names": [image.replace("_", ":")], "sizeBytes": int(mib * MIB)} for image, mib in mib_by_image.items()]
    return node(name, status={"images": images})


def needs(*images: str, init: tuple[str, ...] = (), volumes: tuple[str, ...] = ()) -> dict[str, Any]:
    return {
        "containers": [{"name": f"c{index}", "image": image} for index, image in enumerate(images)],
        "initContainers": [{"name": f"i{index}", "image": image} for index, image in enumerate(init)],
        "volumes": [{"name": f"v{index}", "image": {"reference": image}} for index, image in enumerate(volumes)],
    }


def scores(spec: dict[str, Any], *nodes: Node) -> list[int]:
    found: list[int] = PLUGIN.score(CycleState(), pod_info(**spec), table(*nodes)).tolist()
    return found


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(needs("none"), [0, 0], id="an image that no node has"),
        pytest.param(needs("small"), [0, 0], id="an image below the lower bound"),
        pytest.param(needs("half"), [0, 23], id="500 MiB on one of two nodes count half: 100 * 227 / 977"),
        pytest.param(needs("half:latest"), [0, 23], id="the same image by its full name"),
        pytest.param(needs("half:other"), [0, 0], id="another tag"),
        pytest.param(needs("huge"), [100, 100], id="beyond the upper bound"),
        pytest.param(needs("half", "half"), [0, 24], id="the same image twice counts twice, under a doubled bound"),
        pytest.param(needs("half", init=("half",)), [0, 24], id="init containers count like containers"),
        pytest.param(needs("none", volumes=("half",)), [0, 23], id="image volumes count, without moving the bound"),
    ],
)
def test_the_more_of_its_images_a_node_holds_the_better(spec: dict[str, Any], expected: list[int]) -> None:
    first = node_with("a", small_latest=40, huge_latest=5000)
    second = node_with("b", half_latest=500, huge_latest=5000)
    assert scores(spec, first, second) == expected


def test_an_image_counts_less_the_fewer_nodes_have_it() -> None:
    spec = needs("app:v1")
    with_app = [node_with(f"n{index}", app_v1=977 + 23) for index in range(4)]
    without = [node_with(f"m{index}") for index in range(4)]
    assert scores(spec, *with_app)[0] == 100
    assert scores(spec, *with_app[:2], *without[:2])[0] == 100 * (500 - 23) // 977
    assert scores(spec, with_app[0], *without)[0] == 100 * (200 - 23) // 977


def test_the_share_of_nodes_is_that_of_all_nodes_not_of_the_feasible_ones() -> None:
    nodes = table(node_with("a", app_v1=1000), node_with("b"))
    only_first = nodes.take(nodes.named("a"))
    assert PLUGIN.score(CycleState(), pod_info(**needs("app:v1")), only_first).tolist() == [100 * (500 - 23) // 977]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("app", "app:latest", id="bare"),
        pytest.param("app:v1", "app:v1", id="with a tag"),
        pytest.param("registry:5000/app", "registry:5000/app:latest", id="a port is no tag"),
        pytest.param("registry:5000/app:v1", "registry:5000/app:v1", id="a port and a tag"),
        pytest.param("app@sha256:abc", "app@sha256:abc", id="a digest"),
        pytest.param("", ":latest", id="no name at all"),
    ],
)
def test_names_get_the_tag_that_runtimes_report(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected
