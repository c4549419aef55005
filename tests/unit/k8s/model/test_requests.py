"""What a pod asks for: containers, init containers, sidecars, overhead, pod-level requests, resizes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kubesched.k8s.model import requests
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.meta import ResourceList
from kubesched.k8s.model.requests import AmountError, PodResources, is_extended, is_scalar, node_units, pod_resources

Json = dict[str, Any]
MI = 2**20


def _container(name: str = "main", *, sidecar: bool = False, **amounts: str) -> Json:
    found: Json = {
        "name": name,
        "resources": {"requests": {key.replace("_", "-"): text for key, text in amounts.items()}},
    }
    return {**found, "restartPolicy": "Always"} if sidecar else found


def _pod(*containers: Json, init: list[Json] | None = None, status: Json | None = None, **spec: Any) -> Pod:
    full_spec = {"containers": list(containers), "initContainers": init, **spec}
    return msgspec.convert({"metadata": {"name": "p"}, "spec": full_spec, "status": status or {}}, Pod)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_pod(_container()), {}, id="nothing"),
        pytest.param(
            _pod(_container(cpu="100m", memory="1Mi"), _container("b", cpu="1", ephemeral_storage="5")),
            {"cpu": 1100, "memory": MI, "ephemeral-storage": 5},
            id="containers add up",
        ),
        pytest.param(
            _pod(
                _container(cpu="1", memory="4"), init=[_container("i", cpu="3"), _container("j", cpu="2", memory="9")]
            ),
            {"cpu": 3000, "memory": 9},
            id="init containers run one after the other: the most of any counts",
        ),
        pytest.param(
            _pod(_container(cpu="1"), init=[_container("s", sidecar=True, cpu="2"), _container("i", cpu="3")]),
            {"cpu": 5000},
            id="a sidecar runs beside later init containers",
        ),
        pytest.param(
            _pod(_container(cpu="1"), init=[_container("i", cpu="3"), _container("s", sidecar=True, cpu="2")]),
            {"cpu": 3000},
            id="but not beside earlier ones",
        ),
        pytest.param(
            _pod(
                _container(cpu="1"),
                init=[_container("s", sidecar=True, cpu="2"), _container("t", sidecar=True, cpu="4")],
            ),
            {"cpu": 7000},
            id="sidecars add to the containers",
        ),
        pytest.param(
            _pod(_container(cpu="1"), overhead={"cpu": "250m", "memory": "1Mi"}),
            {"cpu": 1250, "memory": MI},
            id="overhead comes on top",
        ),
        pytest.param(
            _pod(_container(cpu="1", memory="8"), resources={"requests": {"cpu": "5"}}, overhead={"cpu": "1"}),
            {"cpu": 6000, "memory": 8},
            id="pod-level requests replace the sum, overhead still comes on top",
        ),
        pytest.param(
            _pod(_container(cpu="1"), resources={"requests": {"cpu": "500m", "example.com/gpu": "1"}}),
            {"cpu": 500},
            id="pod level knows cpu, memory and huge pages only",
        ),
        pytest.param(
            _pod(_container(cpu="1"), resources={"limits": {"cpu": "5"}}),
            {"cpu": 1000},
            id="pod-level limits alone change nothing",
        ),
        pytest.param(
            _pod(_container(cpu="100u", memory="100m"), _container("b", cpu="100u", memory="100m")),
            {"cpu": 1, "memory": 1},
            id="rounded up once, after adding",
        ),
        pytest.param(
            _pod(
                {
                    "name": "c",
                    "resources": {"requests": {"pods": "1", "a.b/c": "2", "bogus": "3", "hugepages-2Mi": "4Mi"}},
                }
            ),
            {"a.b/c": 2, "hugepages-2Mi": 4 * MI},
            id="resources that nodes do not count are left out",
        ),
    ],
)
def test_the_requests_of_a_pod(pod: Pod, expected: dict[str, int]) -> None:
    assert pod_resources(pod).requests == expected


def _resizing(spec: str, actual: str | None, granted: str | None, *, infeasible: bool = False) -> Pod:
    status: Json = {"name": "main"}
    if actual is not None:
        status["resources"] = {"requests": {"cpu": actual}}
    if granted is not None:
        status["allocatedResources"] = {"cpu": granted}
    conditions = [{"type": "PodResizePending", "reason": "Infeasible" if infeasible else "Deferred"}]
    return _pod(_container(cpu=spec), status={"containerStatuses": [status], "conditions": conditions})


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(_resizing("1", "2", "3"), 3000, id="the most of wanted, set and granted"),
        pytest.param(_resizing("5", "2", "3"), 5000, id="what is wanted may be the most"),
        pytest.param(_resizing("5", "2", "3", infeasible=True), 3000, id="what can never be granted does not count"),
        pytest.param(_resizing("5", "2", None, infeasible=True), 2000, id="even if nothing was granted"),
        pytest.param(_resizing("1", None, "3"), 1000, id="a status without resources says nothing"),
    ],
)
def test_a_pod_that_is_being_resized_counts_with_its_status(pod: Pod, expected: int) -> None:
    assert pod_resources(pod).requests == {"cpu": expected}
    assert pod_resources(pod).wanted == requests.in_node_units(requests.effective_requests(pod, with_status=False))


def test_the_status_of_a_sidecar_counts_and_that_of_a_plain_init_container_does_not() -> None:
    init = [_container("s", sidecar=True, cpu="1"), _container("i", cpu="1")]
    statuses = [{"name": name, "resources": {"requests": {"cpu": "7"}}} for name in ("s", "i")]
    pod = _pod(_container(cpu="1"), init=init, status={"initContainerStatuses": statuses})
    assert pod_resources(pod).requests == {"cpu": 8000}
    assert pod_resources(pod).wanted == {"cpu": 2000}


def test_pod_level_requests_count_with_the_pod_status() -> None:
    status = {"resources": {"requests": {"cpu": "4"}}, "allocatedResources": {"cpu": "3"}}
    pod = _pod(_container(cpu="1"), resources={"requests": {"cpu": "2"}}, status=status)
    assert pod_resources(pod).requests == {"cpu": 4000}
    assert pod_resources(pod).wanted == {"cpu": 2000}


@pytest.mark.parametrize(
    ("pod", "cpu_milli", "memory_bytes"),
    [
        pytest.param(_pod(_container()), 100, 200 * MI, id="a silent container counts with the defaults"),
        pytest.param(_pod(_container(cpu="0", memory="0")), 0, 0, id="zero is not silence"),
        pytest.param(_pod(_container(cpu="1"), _container("b", memory="1Mi")), 1100, 201 * MI, id="each by itself"),
        pytest.param(_pod(_container(), init=[_container("i")]), 100, 200 * MI, id="init containers, too"),
        pytest.param(_pod(_container(), init=[_container("s", sidecar=True)]), 200, 400 * MI, id="and sidecars"),
        pytest.param(
            _pod(_container(), _container("b"), resources={"requests": {"cpu": "1"}}),
            1000,
            400 * MI,
            id="what the pod level names has no default",
        ),
        pytest.param(
            _pod(_container(memory="1Mi"), _container("b"), resources={"requests": {"cpu": "1"}}),
            1000,
            MI,
            id="nor what one container names, when there is a pod level",
        ),
    ],
)
def test_silent_containers_count_with_defaults_when_nodes_are_scored(
    pod: Pod, cpu_milli: int, memory_bytes: int
) -> None:
    found = pod_resources(pod)
    assert (found.nonzero_cpu_milli, found.nonzero_memory_bytes) == (cpu_milli, memory_bytes)


def test_a_new_pod_is_scored_by_its_containers_alone() -> None:
    pod = _pod(_container(cpu="1"), _container("b"), resources={"requests": {"cpu": "9", "memory": "9"}})
    assert pod_resources(pod) == PodResources(
        requests={"cpu": 9000, "memory": 9},
        nonzero_cpu_milli=9000,
        nonzero_memory_bytes=9,
        wanted={"cpu": 9000, "memory": 9},
        container_requests={"cpu": 1100, "memory": 400 * MI},
    )


def test_the_amounts_of_a_node() -> None:
    amounts: ResourceList = {"cpu": "1500m", "memory": "1Ki", "pods": "110", "example.com/gpu": 2, "bogus": "7"}
    assert node_units(amounts, "status.allocatable") == {
        "cpu": 1500,
        "memory": 1024,
        "pods": 110,
        "example.com/gpu": 2,
    }
    assert node_units(None, "status.allocatable") == {}


@pytest.mark.parametrize(
    ("name", "extended", "scalar"),
    [
        pytest.param("cpu", False, False, id="built in"),
        pytest.param("hugepages-2Mi", False, True, id="huge pages"),
        pytest.param("attachable-volumes-aws-ebs", False, True, id="volumes"),
        pytest.param("example.com/gpu", True, True, id="a resource of one's own"),
        pytest.param("kubernetes.io/thing", False, True, id="in Kubernetes' domain"),
        pytest.param("deviceclass.resource.kubernetes.io/a", False, True, id="in a domain below it"),
        pytest.param("requests.example.com/gpu", False, False, id="a quota's name"),
        pytest.param("example.com/a/b", False, False, id="two slashes"),
        pytest.param("Example.com/gpu", False, False, id="a domain in capitals"),
        pytest.param("example.com/-gpu", False, False, id="not a name"),
        pytest.param(f"{'a' * 250}/gpu", False, False, id="too long for a quota"),
        pytest.param("gpu", False, False, id="no domain"),
    ],
)
def test_kinds_of_resources(name: str, extended: bool, scalar: bool) -> None:
    assert (is_extended(name), is_scalar(name)) == (extended, scalar)


@pytest.mark.parametrize(
    ("pod", "field"),
    [
        pytest.param(
            _pod(_container(), _container("b", cpu="lots")), "spec.containers[1].resources.requests.cpu", id="c"
        ),
        pytest.param(_pod(init=[_container(cpu="x")]), "spec.initContainers[0].resources.requests.cpu", id="init"),
        pytest.param(_pod(overhead={"memory": "x"}), "spec.overhead.memory", id="overhead"),
        pytest.param(_pod(resources={"requests": {"cpu": "x"}}), "spec.resources.requests.cpu", id="pod level"),
        pytest.param(_pod(overhead={"a.b/c": "x"}), "spec.overhead[a.b/c]", id="a name with a slash"),
    ],
)
def test_an_amount_that_cannot_be_read_names_its_field(pod: Pod, field: str) -> None:
    with pytest.raises(AmountError) as caught:
        pod_resources(pod)
    assert caught.value.field == field
