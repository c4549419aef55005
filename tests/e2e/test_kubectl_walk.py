"""A real kubectl against `kubesched up`: what people do with a cluster, and what they see."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playground_process import RunningPlayground, playground, why_no_kubectl

_WHY_NOT = why_no_kubectl()
pytestmark = pytest.mark.skipif(bool(_WHY_NOT), reason=_WHY_NOT)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPlayground]:
    with playground(tmp_path_factory.mktemp("walk"), "--nodes", "3") as running:
        yield running


@pytest.fixture
def space(cluster: RunningPlayground, request: pytest.FixtureRequest) -> Iterator[str]:
    """A namespace of the test's own: the option that leads there. Nodes are as at the start again afterwards."""
    name = f"t{abs(hash(request.node.name)) % 10**8}"
    cluster.does(f"create namespace {name}")
    yield f"-n {name}"
    cluster.does(f"delete namespace {name}")
    cluster.does("uncordon node-0 node-1 node-2")


def _column(table: str, title: str) -> list[str]:
    """One column of what `kubectl get` prints."""
    head, *rows = table.splitlines()
    start = head.index(title)
    return [row[start:].split("  ")[0].strip() for row in rows]


def test_fifty_replicas_run_on_all_nodes(cluster: RunningPlayground, space: str) -> None:
    assert cluster.does(f"create deployment web --image=nginx --replicas=50 {space}") == "deployment.apps/web created\n"
    said = cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    assert said.endswith('deployment "web" successfully rolled out\n')
    table = cluster.does(f"get pods -o wide {space}")
    assert _column(table, "STATUS") == ["Running"] * 50
    assert _column(table, "READY") == ["1/1"] * 50
    assert set(_column(table, "NODE")) == {"node-0", "node-1", "node-2"}
    assert _column(cluster.does(f"get deployment web {space}"), "READY") == ["50/50"]


def test_a_watch_shows_how_a_pod_comes_to_run(cluster: RunningPlayground, space: str) -> None:
    with cluster.watching(f"get pods -o wide -w {space}") as lines:
        cluster.does(f"run solo --image=nginx {space}")
        seen: list[str] = []
        for line in lines:
            seen.append(line.split()[2])
            if "Running" in line:
                break
    assert seen[0] == "STATUS"
    assert seen[1] == "Pending"


def test_describe_tells_a_pods_story(cluster: RunningPlayground, space: str) -> None:
    cluster.does(f"run solo --image=nginx {space}")
    cluster.does(f"wait --for=condition=Ready pod/solo --timeout=60s {space}")
    said = cluster.until(f"describe pod solo {space}", "Container started")
    assert "Successfully assigned" in said
    assert "default-scheduler" in said
    assert "PodScheduled                True" in said


def test_a_pod_that_fits_nowhere_says_why(cluster: RunningPlayground, space: str) -> None:
    request = '{"spec":{"containers":[{"name":"c","image":"x","resources":{"requests":{"cpu":"100"}}}]}}'
    said = cluster.kubectl("run", "big", "--image=x", f"--overrides={request}", *space.split())
    assert said.code == 0, said.all
    cluster.does(f"wait --for=condition=PodScheduled=false pod/big --timeout=60s {space}")
    assert _column(cluster.does(f"get pod big {space}"), "STATUS") == ["Pending"]
    why = "0/3 nodes are available: 3 Insufficient cpu."
    assert why in cluster.does(f"get pod big -o jsonpath={{.status.conditions[0].message}} {space}")


def test_cordon_keeps_pods_away_and_drain_moves_them(cluster: RunningPlayground, space: str) -> None:
    cluster.does(f"create deployment web --image=nginx --replicas=9 {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    assert cluster.does("cordon node-0") == "node/node-0 cordoned\n"
    assert "Ready,SchedulingDisabled" in cluster.does("get node node-0")
    cluster.does(f"scale deployment web --replicas=12 {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    assert _column(cluster.does(f"get pods -o wide {space}"), "NODE").count("node-0") == 3
    said = cluster.does("drain node-0 --ignore-daemonsets --timeout=60s")
    assert said.count(" evicted\n") == 3
    assert said.endswith("node/node-0 drained\n")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    assert set(_column(cluster.does(f"get pods -o wide {space}"), "NODE")) == {"node-1", "node-2"}
    assert cluster.does("uncordon node-0") == "node/node-0 uncordoned\n"


def test_drain_respects_a_disruption_budget(cluster: RunningPlayground, space: str) -> None:
    cluster.does(f"create deployment web --image=nginx --replicas=3 {space}")
    cluster.does(f"create poddisruptionbudget web --selector=app=web --min-available=3 {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    cluster.does(f"wait --for=jsonpath={{.status.currentHealthy}}=3 pdb/web --timeout=60s {space}")
    said = cluster.kubectl("drain", "node-1", "--ignore-daemonsets", "--timeout=2s")
    assert said.code != 0
    assert "Cannot evict pod as it would violate the pod's disruption budget." in said.all


def test_taints_drive_pods_out_and_keep_them_out(cluster: RunningPlayground, space: str) -> None:
    cluster.does(f"create deployment web --image=nginx --replicas=6 {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    assert cluster.does("taint nodes node-1 a=b:NoExecute") == "node/node-1 tainted\n"
    try:
        on_node = f"get pods -o wide --field-selector=spec.nodeName=node-1 {space}"
        cluster.does(f"wait --for=delete pod --field-selector=spec.nodeName=node-1 --timeout=60s {space}")
        assert cluster.does(on_node) == ""
        request = '{"spec":{"nodeSelector":{"kubernetes.io/hostname":"node-1"}}}'
        assert cluster.kubectl("run", "p", "--image=x", f"--overrides={request}", *space.split()).code == 0
        cluster.does(f"wait --for=condition=PodScheduled=false pod/p --timeout=60s {space}")
        assert "1 node(s) had untolerated taint(s)" in cluster.does(f"describe pod p {space}")
    finally:
        assert cluster.does("taint nodes node-1 a-") == "node/node-1 untainted\n"
    cluster.does(f"wait --for=condition=Ready pod/p --timeout=60s {space}")


def test_a_label_on_a_node_lets_a_waiting_pod_in(cluster: RunningPlayground, space: str) -> None:
    request = '{"spec":{"nodeSelector":{"disk":"ssd"}}}'
    assert cluster.kubectl("run", "p", "--image=x", f"--overrides={request}", *space.split()).code == 0
    cluster.does(f"wait --for=condition=PodScheduled=false pod/p --timeout=60s {space}")
    assert cluster.does("label node node-2 disk=ssd") == "node/node-2 labeled\n"
    cluster.does(f"wait --for=condition=Ready pod/p --timeout=60s {space}")
    assert _column(cluster.does(f"get pod p -o wide {space}"), "NODE") == ["node-2"]
    assert cluster.does("label node node-2 disk-") == "node/node-2 unlabeled\n"


def test_a_rollout_is_numbered_and_undone(cluster: RunningPlayground, space: str) -> None:
    cluster.does(f"create deployment web --image=nginx:1 --replicas=3 {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    assert cluster.does(f"scale deployment web --replicas=4 {space}") == "deployment.apps/web scaled\n"
    assert "image updated" in cluster.does(f"set image deployment/web nginx=nginx:2 {space}")
    assert "successfully rolled out" in cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    history = cluster.does(f"rollout history deployment/web {space}").split()
    assert [word for word in history if word.isdecimal()] == ["1", "2"]
    assert "rolled back" in cluster.does(f"rollout undo deployment/web {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    image = "-o jsonpath={.spec.template.spec.containers[0].image}"
    assert cluster.does(f"get deployment web {image} {space}") == "nginx:1"
    said = cluster.does(f"describe deployment web {space}")
    assert "ScalingReplicaSet" in said
    assert "Scaled up replica set web-" in said


@pytest.mark.parametrize(
    ("kind", "short"),
    [pytest.param("StatefulSet", "sts", id="stateful set"), pytest.param("DaemonSet", "ds", id="daemon set")],
)
def test_sets_have_a_history_too(cluster: RunningPlayground, space: str, kind: str, short: str) -> None:
    manifest = f"""
apiVersion: apps/v1
kind: {kind}
metadata: {{name: db}}
spec:
  selector: {{matchLabels: {{app: db}}}}
  template:
    metadata: {{labels: {{app: db}}}}
    spec: {{containers: [{{name: c, image: "x:1"}}]}}
"""
    cluster.does(f"apply -f - {space}", stdin=manifest)
    cluster.does(f"rollout status {short}/db --timeout=60s {space}")
    cluster.does(f"set image {short}/db c=x:2 {space}")
    cluster.does(f"rollout status {short}/db --timeout=60s {space}")
    history = cluster.does(f"rollout history {short}/db {space}").split()
    assert [word for word in history if word.isdecimal()] == ["1", "2"]
    assert "x:1" in cluster.does(f"rollout history {short}/db --revision=1 {space}")
    assert "rolled back" in cluster.does(f"rollout undo {short}/db {space}")
    cluster.does(f"rollout status {short}/db --timeout=60s {space}")
    assert set(cluster.does(f"get pods -o jsonpath={{..image}} {space}").split()) == {"x:1"}


MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {color: blue}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api}
spec:
  replicas: 2
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: c, image: nginx, resources: {requests: {cpu: 100m}}}]}
"""


def test_apply_diff_edit_and_delete(cluster: RunningPlayground, space: str) -> None:
    assert cluster.does(f"apply -f - {space}", MANIFEST) == "configmap/settings created\ndeployment.apps/api created\n"
    again = cluster.does(f"apply -f - {space}", MANIFEST)
    assert again == "configmap/settings unchanged\ndeployment.apps/api unchanged\n"
    other = MANIFEST.replace("blue", "red").replace("replicas: 2", "replicas: 3")
    differing = cluster.kubectl("diff", "-f", "-", *space.split(), stdin=other)
    assert differing.code == 1, differing.all
    assert {"-  color: blue", "+  color: red", "-  replicas: 2", "+  replicas: 3"} <= set(differing.out.splitlines())
    assert "deployment.apps/api configured" in cluster.does(f"apply -f - {space}", other)
    assert cluster.kubectl("diff", "-f", "-", *space.split(), stdin=other).code == 0
    edited = cluster.kubectl(
        "edit", "deployment", "api", *space.split(), KUBE_EDITOR="sed -i s/replicas:.3/replicas:4/"
    )
    assert edited.code != 0  # what the editor left is no YAML; kubectl says so, and nothing has changed
    edited = cluster.kubectl(
        "edit", "deployment", "api", *space.split(), KUBE_EDITOR="sed -i 's/replicas: 3/replicas: 4/'"
    )
    assert edited.out == "deployment.apps/api edited\n", edited.all
    assert cluster.does(f"get deployment api -o jsonpath={{.spec.replicas}} {space}") == "4"
    gone = cluster.does(f"delete -f - {space}", other)
    assert 'configmap "settings" deleted' in gone
    cluster.does(f"wait --for=delete pod -l app=api --timeout=60s {space}")
    assert cluster.kubectl("get", "deployment", "api", *space.split()).err.startswith("Error from server (NotFound)")


def test_server_side_apply_knows_owners(cluster: RunningPlayground, space: str) -> None:
    applied = cluster.does(f"apply --server-side -f - {space}", MANIFEST)
    assert applied == "configmap/settings serverside-applied\ndeployment.apps/api serverside-applied\n"
    other = MANIFEST.replace("blue", "red")
    refused = cluster.kubectl(
        "apply", "--server-side", "--field-manager=somebody", "-f", "-", *space.split(), stdin=other
    )
    assert refused.code == 1
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.color' in refused.err
    forced = f"apply --server-side --force-conflicts --field-manager=somebody -f - {space}"
    assert "configmap/settings serverside-applied" in cluster.does(forced, other)
    assert cluster.does(f"get configmap settings -o jsonpath={{.data.color}} {space}") == "red"


def test_a_mistake_in_a_manifest_is_named(cluster: RunningPlayground, space: str) -> None:
    said = cluster.kubectl("apply", "-f", "-", *space.split(), stdin=MANIFEST.replace("replicas: 2", "replica: 2"))
    assert said.code == 1
    assert 'unknown field "spec.replica"' in said.err
    said = cluster.kubectl("apply", "-f", "-", *space.split(), stdin=MANIFEST.replace("replicas: 2", "replicas: -2"))
    assert "spec.replicas: Invalid value: -2: must be greater than or equal to 0" in said.err


def test_events_tell_who_did_what(cluster: RunningPlayground, space: str) -> None:
    cluster.does(f"create deployment web --image=nginx --replicas=2 {space}")
    cluster.does(f"rollout status deployment/web --timeout=60s {space}")
    for reason, kind in (
        ("ScalingReplicaSet", "deployment/web"),
        ("SuccessfulCreate", "replicaset/web-"),
        ("Scheduled", "pod/web-"),
        ("Started", "pod/web-"),
    ):
        table = cluster.until(f"get events --field-selector=reason={reason} {space}", kind)
        assert all(name.startswith(kind) for name in _column(table, "OBJECT"))
    cluster.does(f"delete deployment web {space}")
    cluster.until(f"get events --field-selector=reason=Killing {space}", "Stopping container nginx")


def test_top_is_refused_with_a_clear_word(cluster: RunningPlayground) -> None:
    for what in ("nodes", "pods"):
        said = cluster.kubectl("top", what)
        assert (said.code, said.all) == (1, "error: Metrics API not available\n")


def test_the_server_tells_what_it_has(cluster: RunningPlayground) -> None:
    table = cluster.does("api-resources")
    lines = {tuple(line.split()) for line in table.splitlines()}
    assert ("deployments", "deploy", "apps/v1", "true", "Deployment") in lines
    assert ("nodes", "no", "v1", "false", "Node") in lines
    assert "apps/v1" in cluster.does("api-versions").splitlines()
    said = cluster.does("explain pod.spec")
    assert said.splitlines()[0].split() == ["KIND:", "Pod"]
    assert "nodeSelector\t<map[string]string>" in said
    assert "schedulerName\t<string>" in said
    assert "maxSurge" in cluster.does("explain deployment.spec.strategy --recursive")


def test_a_claim_waits_for_its_pod_and_stays_while_it_is_used(cluster: RunningPlayground, space: str) -> None:
    manifest = """
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: late}
provisioner: pretend.example/disk
volumeBindingMode: WaitForFirstConsumer
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec: {containers: [{name: c, image: x, volumeMounts: [{name: data, mountPath: /d}]}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], storageClassName: late, resources: {requests: {storage: 1Gi}}}
"""
    cluster.does(f"apply -f - {space}", manifest)
    cluster.does(f"rollout status sts/db --timeout=60s {space}")
    assert _column(cluster.does(f"get pvc {space}"), "STATUS") == ["Bound"]
    cluster.does(f"delete pvc data-db-0 --wait=false {space}")
    assert _column(cluster.does(f"get pvc {space}"), "STATUS") == ["Terminating"]
    cluster.does(f"delete sts db {space}")
    cluster.does(f"wait --for=delete pvc/data-db-0 --timeout=60s {space}")
