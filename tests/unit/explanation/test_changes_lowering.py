"""Smaller requests written into a pod: the whole asks for exactly so much, and as few containers as possible change."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubesched.explanation.changes.requests import lower_request
from kubesched.explanation.changes.what_if import patched
from kubesched.k8s.model.core import Pod
from kubesched.k8s.model.requests import pod_resources

GPU = "example.com/gpu"


def _container(name: str, *, restart: str | None = None, limits: bool = False, **requests: str) -> dict[str, Any]:
    amounts = {GPU if key == "gpu" else key: value for key, value in requests.items()}
    resources = {"requests": amounts, **({"limits": amounts} if limits else {})}
    return {"name": name, "resources": resources, **({"restartPolicy": restart} if restart else {})}


def _pod(*containers: dict[str, Any], **spec: Any) -> Pod:
    return msgspec.convert({"metadata": {"name": "p"}, "spec": {"containers": containers, **spec}}, Pod)


CASES = [
    pytest.param(
        _pod(_container("a", cpu="2")),
        ("cpu", 1500),
        {"/spec/containers/0/resources/requests/cpu": "1500m"},
        id="one container takes it all",
    ),
    pytest.param(
        _pod(_container("a", cpu="500m"), _container("b", cpu="2")),
        ("cpu", 1800),
        {"/spec/containers/1/resources/requests/cpu": "1300m"},
        id="the largest gives way",
    ),
    pytest.param(
        _pod(_container("a", cpu="500m"), _container("b", cpu="2")),
        ("cpu", 300),
        {
            "/spec/containers/0/resources/requests/cpu": "300m",
            "/spec/containers/1/resources/requests/cpu": "0",
        },
        id="then the next",
    ),
    pytest.param(
        _pod(_container("a", memory="1Gi"), initContainers=[_container("i", memory="4Gi")]),
        ("memory", 2 * 1024**3),
        {"/spec/initContainers/0/resources/requests/memory": "2Gi"},
        id="an init container is brought under the limit",
    ),
    pytest.param(
        _pod(
            _container("a", cpu="1"),
            initContainers=[_container("s", cpu="1", restart="Always"), _container("i", cpu="3")],
        ),
        ("cpu", 2000),
        {"/spec/initContainers/1/resources/requests/cpu": "1"},
        id="beside a sidecar an init container has less",
    ),
    pytest.param(
        _pod(_container("a", cpu="2"), overhead={"cpu": "250m"}),
        ("cpu", 1000),
        {"/spec/containers/0/resources/requests/cpu": "750m"},
        id="overhead stays",
    ),
    pytest.param(
        _pod(_container("a", cpu="1"), resources={"requests": {"cpu": "4"}}),
        ("cpu", 2000),
        {"/spec/resources/requests/cpu": "2"},
        id="a request of the whole pod",
    ),
    pytest.param(
        _pod(_container("a", gpu="2", limits=True)),
        (GPU, 1),
        {
            "/spec/containers/0/resources/requests/example.com~1gpu": "1",
            "/spec/containers/0/resources/limits/example.com~1gpu": "1",
        },
        id="the limit of an extended resource follows",
    ),
]


@pytest.mark.parametrize(("pod", "target", "expected"), CASES)
def test_requests_are_lowered_where_it_takes_fewest_changes(
    pod: Pod, target: tuple[str, int], expected: dict[str, str]
) -> None:
    operations = lower_request(pod, *target)
    assert operations is not None
    assert {operation.pointer: operation.value for operation in operations} == expected
    assert pod_resources(patched(pod, operations)).wanted[target[0]] == target[1]


def test_a_request_cannot_be_lowered_below_the_overhead() -> None:
    assert lower_request(_pod(_container("a", cpu="2"), overhead={"cpu": "500m"}), "cpu", 400) is None


_AMOUNTS = st.integers(0, 4000).map(lambda milli: f"{milli}m")


@given(
    st.lists(_AMOUNTS, min_size=1, max_size=3),
    st.lists(st.tuples(_AMOUNTS, st.booleans()), max_size=3),
    st.one_of(st.none(), _AMOUNTS),
    st.floats(0, 1),
)
def test_a_lowered_pod_asks_for_exactly_the_target(
    containers: list[str], init: list[tuple[str, bool]], whole: str | None, share: float
) -> None:
    pod = _pod(
        *(_container(f"c{index}", cpu=cpu) for index, cpu in enumerate(containers)),
        initContainers=[
            _container(f"i{index}", cpu=cpu, restart="Always" if stays else None)
            for index, (cpu, stays) in enumerate(init)
        ],
        **({"resources": {"requests": {"cpu": whole}}} if whole is not None else {}),
    )
    target = int(pod_resources(pod).wanted["cpu"] * share)
    operations = lower_request(pod, "cpu", target)
    assert operations is not None
    assert pod_resources(patched(pod, operations)).wanted["cpu"] == target
