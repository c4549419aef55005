"""Pods as the API server takes them: defaults, admission, validation, warnings."""

from __future__ import annotations

from typing import Any

import pytest
from written_objects import PODS, FakeLookup, container, create, errors, pod

from kubesched.playground.apiserver.errors import StatusError
from kubesched.playground.apiserver.served_resource import Object

_NAME_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def _spec(**given: Any) -> Object:
    spec: Object = create(PODS, pod(**given))[0]["spec"]
    return spec


def test_a_minimal_pod_gets_every_default() -> None:
    stored, _ = create(PODS, pod())
    assert stored["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "registry.k8s.io/pause:3.9",
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "IfNotPresent",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [
            {
                "key": f"node.kubernetes.io/{state}",
                "operator": "Exists",
                "effect": "NoExecute",
                "tolerationSeconds": 300,
            }
            for state in ("not-ready", "unreachable")
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    assert stored["status"] == {"phase": "Pending", "qosClass": "BestEffort"}


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("a", "Always", id="no tag means latest"),
        pytest.param("a:latest", "Always", id="latest"),
        pytest.param("a:1", "IfNotPresent", id="another tag"),
        pytest.param("a@sha256:" + "0" * 64, "IfNotPresent", id="a digest alone"),
        pytest.param("host:5000/a", "Always", id="a port is no tag"),
    ],
)
def test_the_pull_policy_follows_the_image(image: str, policy: str) -> None:
    assert _spec(containers=[container(image=image)])["containers"][0]["imagePullPolicy"] == policy


def test_requests_come_from_limits_and_round_up_to_a_thousandth() -> None:
    resources = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "100u"}}
    assert _spec(containers=[container(resources=resources)])["containers"][0]["resources"] == {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": "1m", "memory": "1Gi"},
    }


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({}, "BestEffort", id="nothing asked"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="a request"),
        pytest.param({"limits": {"cpu": "1", "memory": "1Gi"}}, "Guaranteed", id="limits on both"),
        pytest.param({"limits": {"cpu": "1"}}, "Burstable", id="a limit on one"),
        pytest.param({"requests": {"cpu": "0"}}, "BestEffort", id="zero is nothing"),
    ],
)
def test_the_quality_of_service_follows_requests_and_limits(resources: Object, expected: str) -> None:
    stored, _ = create(PODS, pod(containers=[container(resources=resources)]))
    assert stored["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("given", "n_added"),
    [
        pytest.param([], 2, id="none given"),
        pytest.param([{"operator": "Exists"}], 0, id="everything tolerated"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}], 1, id="one said"),
        pytest.param([{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}], 2, id="another effect"),
    ],
)
def test_five_minutes_on_unhealthy_nodes_unless_said_otherwise(given: list[Object], n_added: int) -> None:
    assert len(_spec(tolerations=given)["tolerations"]) == len(given) + n_added


def test_match_label_keys_become_part_of_the_selectors() -> None:
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "z", "mismatchLabelKeys": ["v"]}
    constraint = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
    body = pod(
        affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
        topologySpreadConstraints=[{**constraint, "matchLabelKeys": ["v", "absent"]}],
    )
    body["metadata"]["labels"] = {"v": "2"}
    spec = create(PODS, body)[0]["spec"]
    required = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required[0]["labelSelector"]["matchExpressions"] == [{"key": "v", "operator": "NotIn", "values": ["2"]}]
    assert spec["topologySpreadConstraints"][0]["labelSelector"]["matchExpressions"] == [
        {"key": "v", "operator": "In", "values": ["2"]}
    ]


def test_a_gated_pod_begins_with_the_condition_that_says_so() -> None:
    stored, _ = create(PODS, pod(schedulingGates=[{"name": "a"}]))
    (condition,) = stored["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")


_CLASSES = [
    {"metadata": {"name": "high"}, "value": 1000, "preemptionPolicy": "Never"},
    {"metadata": {"name": "dflt"}, "value": 42, "globalDefault": True},
]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"priorityClassName": "high"}, ("high", 1000, "Never"), id="the class it names"),
        pytest.param({}, ("dflt", 42, "PreemptLowerPriority"), id="the global default"),
        pytest.param({"priorityClassName": "high", "priority": 1000}, ("high", 1000, "Never"), id="the right number"),
    ],
)
def test_priority_comes_from_the_priority_class(spec: Object, expected: tuple[str, int, str]) -> None:
    lookup = FakeLookup({"priorityclasses.scheduling.k8s.io": _CLASSES})
    stored = create(PODS, pod(**spec), lookup)[0]["spec"]
    assert (stored["priorityClassName"], stored["priority"], stored["preemptionPolicy"]) == expected


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        pytest.param({"priorityClassName": "none"}, "no PriorityClass with name none was found", id="unknown class"),
        pytest.param(
            {"priority": 7},
            "the integer value of priority (7) must not be provided in pod spec; priority admission controller "
            "computed 0 from the given PriorityClass name",
            id="a number of its own",
        ),
        pytest.param({"runtimeClassName": "r"}, 'pod rejected: RuntimeClass "r" not found', id="unknown runtime class"),
        pytest.param(
            {"overhead": {"cpu": "1"}},
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            id="overhead without runtime class",
        ),
    ],
)
def test_admission_refuses(spec: Object, why: str) -> None:
    with pytest.raises(StatusError) as refusal:
        create(PODS, pod(**spec))
    assert (refusal.value.code, refusal.value.message) == (403, f'pods "p" is forbidden: {why}')


def test_a_runtime_class_adds_overhead_selector_and_tolerations() -> None:
    runtime = {
        "metadata": {"name": "r"},
        "overhead": {"podFixed": {"cpu": "250m"}},
        "scheduling": {"nodeSelector": {"rt": "yes"}, "tolerations": [{"key": "rt", "operator": "Exists"}]},
    }
    lookup = FakeLookup({"runtimeclasses.node.k8s.io": [runtime]})
    spec = create(PODS, pod(runtimeClassName="r", nodeSelector={"z": "1"}), lookup)[0]["spec"]
    assert spec["overhead"] == {"cpu": "250m"}
    assert spec["nodeSelector"] == {"z": "1", "rt": "yes"}
    assert spec["tolerations"][-1] == {"key": "rt", "operator": "Exists"}


_SPREAD = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
_ANTI = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": []}, ["spec.containers: Required value"], id="no containers"),
        pytest.param({"containers": [{"name": "c"}]}, ["spec.containers[0].image: Required value"], id="no image"),
        pytest.param(
            {"containers": [container(), container()]},
            ['spec.containers[1].name: Duplicate value: "c"'],
            id="two containers of one name",
        ),
        pytest.param(
            {"restartPolicy": "Sometimes"},
            ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
            id="an unknown restart policy",
        ),
        pytest.param(
            {"containers": [container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})]},
            ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
            id="a request above its limit",
        ),
        pytest.param(
            {"containers": [container(resources={"requests": {"example.com/gpu": "1"}})]},
            ["spec.containers[0].resources.limits: Required value: Limit must be set for non overcommitable resources"],
            id="an extended resource without a limit",
        ),
        pytest.param(
            {"containers": [container(resources={"requests": {"foo": "1"}})]},
            [
                'spec.containers[0].resources.requests[foo]: Invalid value: "foo": '
                "must be a standard resource type or fully qualified",
                'spec.containers[0].resources.requests[foo]: Invalid value: "foo": '
                "must be a standard resource for containers",
            ],
            id="an unknown resource",
        ),
        pytest.param(
            {
                "containers": [
                    container(ports=[{"containerPort": 7, "hostPort": 7}, {"containerPort": 8, "hostPort": 7}])
                ]
            },
            ['spec.containers[0].ports[1].hostPort: Duplicate value: "TCP//7"'],
            id="a host port twice",
        ),
        pytest.param(
            {"containers": [container(volumeMounts=[{"name": "x", "mountPath": "/x"}])]},
            ['spec.containers[0].volumeMounts[0].name: Not found: "x"'],
            id="a mount of nothing",
        ),
        pytest.param(
            {"volumes": [{"name": "a", "emptyDir": {}, "hostPath": {"path": "/"}}]},
            ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
            id="a volume of two sorts",
        ),
        pytest.param(
            {"tolerations": [{"key": "a", "operator": "X"}]},
            ['spec.tolerations[0].operator: Unsupported value: "X": supported values: "Equal", "Exists"'],
            id="an unknown toleration operator",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{**_SPREAD, "maxSkew": 0}]},
            ["spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"],
            id="no skew allowed",
        ),
        pytest.param(
            {"topologySpreadConstraints": [_SPREAD, _SPREAD]},
            [
                "spec.topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: "
                'Duplicate value: "{z, DoNotSchedule}"'
            ],
            id="one spread twice",
        ),
        pytest.param(
            {"topologySpreadConstraints": [{**_SPREAD, "matchLabelKeys": ["a"]}]},
            [
                "spec.topologySpreadConstraints[0].matchLabelKeys: "
                "Forbidden: must not be specified when labelSelector is not set"
            ],
            id="label keys without a selector",
        ),
        pytest.param(
            {
                "affinity": {
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [{"labelSelector": {}, "topologyKey": ""}]
                    }
                }
            },
            [
                f"{_ANTI}.topologyKey: Required value: can not be empty",
                f'{_ANTI}.topologyKey: Invalid value: "": name part must be non-empty',
                f'{_ANTI}.topologyKey: Invalid value: "": {_NAME_RULE}',
            ],
            id="anti-affinity without a topology",
        ),
        pytest.param(
            {"schedulingGates": [{"name": "a"}], "nodeName": "n"},
            ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
            id="gated and placed",
        ),
        pytest.param(
            {"resourceClaims": [{"name": "x"}]},
            [
                'spec.resourceClaims[0]: Invalid value: {"Name":"x","ResourceClaimName":null,'
                '"ResourceClaimTemplateName":null}: '
                "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            ],
            id="a claim from nowhere",
        ),
        pytest.param(
            {"containers": [container(resources={"requests": {"cpu": "2"}})], "resources": {"requests": {"cpu": "1"}}},
            [
                'spec.resources.requests[cpu]: Invalid value: "1": '
                "must be greater than or equal to aggregate container requests of 2"
            ],
            id="a pod that asks for less than its containers",
        ),
        pytest.param(
            {"activeDeadlineSeconds": 0},
            ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
            id="a deadline at once",
        ),
    ],
)
def test_what_is_wrong_is_told_in_the_real_words(spec: Object, expected: list[str]) -> None:
    assert errors(PODS, pod(**spec)) == expected


def test_warnings_come_for_what_is_accepted_but_odd() -> None:
    odd = container(
        env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}], resources={"requests": {"memory": "500m"}}
    )
    _, ctx = create(PODS, pod(containers=[odd], nodeSelector={"beta.kubernetes.io/os": "linux"}))
    assert ctx.warnings == [
        'spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead',
        'spec.containers[0].resources.requests[memory]: fractional byte value "500m" is invalid, must be an integer',
        'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply',
    ]
