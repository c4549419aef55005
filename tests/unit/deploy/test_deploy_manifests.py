"""The objects in deploy/ are whole, and refer to each other by names that exist."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deploy_files import BASE, DEPLOY, KUSTOMIZATIONS, NAMESPACE, container_of, only, read_all, read_one, resources_of

from kubesched.live.options.flag_table import FLAGS_BY_NAME
from kubesched.live.serving.settings import DEFAULT_PORT

OBJECTS = resources_of(BASE)
DEPLOYMENT = only(OBJECTS, "Deployment")
POD = DEPLOYMENT["spec"]["template"]["spec"]
CONTAINER = container_of(DEPLOYMENT)
LABELS = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
MONITOR = only(resources_of(DEPLOY / "components" / "service-monitor"), "ServiceMonitor")
NOT_OBJECTS = {
    "gates.yaml",
    "rights.yaml",
    "kustomization.yaml",
    "lease-name.yaml",
    "egress.yaml",
    "serving-certificate.yaml",
}
CHART = DEPLOY / "helm"
WITHOUT_NAMESPACE = {"ClusterRole", "ClusterRoleBinding"}


def files_of(folder: Path) -> set[str]:
    """Every file and folder that a kustomization refers to."""
    content: dict[str, Any] = read_one(folder / "kustomization.yaml")
    files = {*content.get("resources", ()), *content.get("components", ())}
    files |= {patch["path"] for patch in content.get("patches", ())}
    return files | {file for made in content.get("configMapGenerator", ()) for file in made["files"]}


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(DEPLOY.rglob("*.yaml")) if CHART not in path.parents],
    ids=lambda path: str(path.relative_to(DEPLOY)),
)
def test_every_file_is_yaml_and_every_object_has_kind_and_version(path: Path) -> None:
    documents = read_all(path)
    assert documents
    if path.name not in NOT_OBJECTS:
        assert all(document["apiVersion"] and document["kind"] for document in documents)


@pytest.mark.parametrize("path", KUSTOMIZATIONS, ids=lambda path: str(path.parent.relative_to(DEPLOY)))
def test_a_kustomization_lists_what_is_there_and_all_of_it(path: Path) -> None:
    listed = files_of(path.parent)
    assert [name for name in sorted(listed) if not (path.parent / name).exists()] == []
    beside_it = {file.name for file in path.parent.glob("*.yaml")} - {"kustomization.yaml"}
    assert beside_it - listed == set(), "a file that is applied by nobody"


@pytest.mark.parametrize("overlay", ["beside", "replace"])
def test_an_overlay_shows_how_to_add_a_component_that_exists(overlay: str) -> None:
    folder = DEPLOY / "overlays" / overlay
    shown = {
        line.removeprefix("#   - ")
        for line in (folder / "kustomization.yaml").read_text().splitlines()
        if line.startswith("#   - ")
    }
    assert {(folder / one).resolve() for one in shown} == set((DEPLOY / "components").iterdir())
    assert {read_one(folder / one / "kustomization.yaml")["kind"] for one in shown} == {"Component"}


@pytest.mark.parametrize("manifest", [*OBJECTS, MONITOR], ids=lambda m: f"{m['kind']} {m['metadata']['name']}")
def test_an_object_is_labelled_and_in_the_namespace(manifest: dict[str, Any]) -> None:
    assert manifest["metadata"]["labels"] == LABELS
    expected = None if manifest["kind"] in WITHOUT_NAMESPACE else NAMESPACE
    assert manifest["metadata"].get("namespace") == expected


def test_no_namespace_is_created_and_no_object_is_there_twice() -> None:
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in OBJECTS]
    assert len(names) == len(set(names))
    assert "Namespace" not in {kind for kind, _ in names}


@pytest.mark.parametrize(
    "selector",
    [
        pytest.param(DEPLOYMENT["spec"]["selector"]["matchLabels"], id="of the deployment"),
        pytest.param(only(OBJECTS, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"], id="of the budget"),
        pytest.param(only(OBJECTS, "Service")["spec"]["selector"], id="of the service"),
        pytest.param(MONITOR["spec"]["selector"]["matchLabels"], id="of the monitor, which selects the service"),
        *(
            pytest.param(spread["labelSelector"]["matchLabels"], id=f"of the spread over {spread['topologyKey']}")
            for spread in POD["topologySpreadConstraints"]
        ),
    ],
)
def test_a_selector_means_our_pods(selector: dict[str, str]) -> None:
    assert selector == LABELS


def test_one_copy_may_go_at_a_time_and_none_before_the_next_is_there() -> None:
    assert DEPLOYMENT["spec"]["replicas"] == 2
    assert only(OBJECTS, "PodDisruptionBudget")["spec"]["minAvailable"] == 1
    assert DEPLOYMENT["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert {spread["whenUnsatisfiable"] for spread in POD["topologySpreadConstraints"]} == {"ScheduleAnyway"}


def test_probes_ask_for_open_paths_on_the_secure_port() -> None:
    probes = [CONTAINER[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")]
    assert [probe["path"] for probe in probes] == ["/livez", "/healthz", "/readyz"]
    assert {probe["path"] for probe in probes} <= set(FLAGS_BY_NAME["authorization-always-allow-paths"].default)
    assert {(probe["port"], probe["scheme"]) for probe in probes} == {("https", "HTTPS")}


def test_ports_are_the_same_everywhere() -> None:
    (port,) = CONTAINER["ports"]
    (served,) = only(OBJECTS, "Service")["spec"]["ports"]
    assert port == {"name": "https", "containerPort": DEFAULT_PORT}
    assert (served["name"], served["port"], served["targetPort"]) == ("https", DEFAULT_PORT, port["name"])
    assert {endpoint["port"] for endpoint in MONITOR["spec"]["endpoints"]} == {served["name"]}
    assert f"--secure-port={DEFAULT_PORT}" in CONTAINER["args"]


def test_the_pod_fits_the_restricted_standard() -> None:
    """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted"""
    assert POD["securityContext"]["runAsNonRoot"] is True
    assert POD["securityContext"]["runAsUser"] != 0
    assert POD["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not {"hostNetwork", "hostPID", "hostIPC"} & POD.keys()
    assert all(volume.keys() & {"configMap", "emptyDir"} for volume in POD["volumes"])


def test_the_pod_is_never_held_back_by_lesser_ones() -> None:
    assert POD["priorityClassName"] == "system-cluster-critical"
    assert CONTAINER["resources"]["requests"].keys() == {"cpu", "memory"}
    assert CONTAINER["resources"]["limits"].keys() == {"memory"}, "a throttled leader loses its lease"


def test_only_the_secure_port_can_be_reached() -> None:
    policy = only(OBJECTS, "NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"] == LABELS
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"ports": [{"port": DEFAULT_PORT, "protocol": "TCP"}]}]


def test_metrics_are_scraped_only_from_a_server_that_is_verified() -> None:
    service = only(OBJECTS, "Service")["metadata"]
    (serving,) = [
        patch["value"]["secret"]["secretName"]
        for patch in read_one(DEPLOY / "components" / "service-monitor" / "serving-certificate.yaml")
        if patch["path"].endswith("/volumes/-")
    ]
    for endpoint in MONITOR["spec"]["endpoints"]:
        assert endpoint["tlsConfig"] == {
            "ca": {"secret": {"name": serving, "key": "ca.crt"}},
            "serverName": f"{service['name']}.{service['namespace']}.svc",
        }


def test_every_mounted_volume_exists_and_keys_pass_through_memory_alone() -> None:
    volumes = {volume["name"]: volume for volume in POD["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
    assert mounts.keys() == volumes.keys()
    assert mounts["tmp"] == "/tmp"
    assert volumes["tmp"]["emptyDir"]["medium"] == "Memory"


def test_only_the_pod_gets_the_token_of_the_account() -> None:
    account = only(OBJECTS, "ServiceAccount")
    assert account["automountServiceAccountToken"] is False
    assert POD["automountServiceAccountToken"] is True
    assert POD["serviceAccountName"] == account["metadata"]["name"]
