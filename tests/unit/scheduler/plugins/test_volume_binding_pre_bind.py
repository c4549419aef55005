"""VolumeBinding, PreBind: what is written, in which order, and when the waiting ends."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from storage_clusters import ZONE, StorageCluster, claim, node, on_label, pod, storage_class, volume

from kubesched.framework import OK, CycleState, Status
from kubesched.framework.effects import Done, Failed, WaitUntil, Written
from kubesched.framework.extension_points import Steps
from kubesched.k8s.model.meta import KubeObject
from kubesched.k8s.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kubesched.older.config import emulate, generation_of
from kubesched.older.plugins.kinds import build_plugin
from kubesched.older.plugins.volume_binding import OlderVolumeBinding
from kubesched.scheduler.config.plugin_args import VolumeBindingArgs
from kubesched.scheduler.plugins.volume_binding import VolumeBinding
from kubesched.scheduler.plugins.volume_binding.binding import BindVolumeToClaim, SelectNodeForClaim

INCOMING = pod("p", "static", "made")
SELECTED = "volume.kubernetes.io/selected-node"
REFERENCE = ObjectReference("PersistentVolumeClaim", "default", "static", "uid-static", "v1", "3")
WRITE_VOLUME = BindVolumeToClaim("pv", "7", REFERENCE, is_ours=True)
WRITE_CLAIM = SelectNodeForClaim("default", "made", "4", "n")


class Binding:
    """One pod on its way: a claim that gets a volume, and a claim that gets a new one."""

    def __init__(self) -> None:
        self.cluster = StorageCluster(
            node("n", zone="a"),
            storage_class("static", provisioner="kubernetes.io/no-provisioner"),
            storage_class("made"),
            claim("static", storage_class="static", version="3"),
            claim("made", storage_class="made", version="4"),
            volume("pv", storage_class="static", version="7"),
        )
        self.plugin = VolumeBinding(VolumeBindingArgs(bind_timeout_seconds=30), self.cluster)
        self.cycle, self.info = CycleState(), self.cluster.info(INCOMING)
        self.plugin.pre_filter(self.cycle, self.info, self.cluster.nodes)
        self.plugin.filter(self.cycle, self.info, self.cluster.nodes)
        assert self.plugin.reserve(self.cycle, self.info, "n") == OK
        self.steps: Steps = self.plugin.pre_bind(self.cycle, self.info, "n")
        self.wait = WaitUntil(lambda: False, 0.0)

    def write_all(self) -> None:
        assert next(self.steps) == WRITE_VOLUME
        assert self.steps.send(Written("8")) == WRITE_CLAIM
        wait = self.steps.send(Written("9"))
        assert isinstance(wait, WaitUntil)
        assert (wait.timeout_s, wait.watched) == (30.0, (PersistentVolume, PersistentVolumeClaim))
        assert not wait.looks_at_once, "the first look is when something changed, or after a second"
        self.wait = wait

    def outcome(self, answer: object) -> Status:
        """The status that the steps end in when they are sent this."""
        with pytest.raises(StopIteration) as end:
            self.steps.send(answer)
        status: Status = end.value.value
        return status

    def see(self, *objects: KubeObject) -> None:
        self.cluster.put(*objects)


BOUND_VOLUME = volume("pv", storage_class="static", claim="static", version="8")
BOUND_CLAIM = claim("static", storage_class="static", volume="pv", version="10")
NEW_VOLUME = volume("new", storage_class="made", claim="made", affinity=on_label(ZONE, "a"))
MADE_CLAIM = claim("made", storage_class="made", volume="new", annotations={SELECTED: "n"}, version="11")


def test_volumes_are_written_first_then_claims_then_it_waits_until_all_are_bound() -> None:
    binding = Binding()
    binding.write_all()
    assert not binding.wait.is_settled()
    binding.see(BOUND_VOLUME, BOUND_CLAIM)
    assert not binding.wait.is_settled()
    binding.see(NEW_VOLUME, MADE_CLAIM)
    assert binding.outcome(Done()) == OK


@pytest.mark.parametrize(
    ("arrive", "message"),
    [
        pytest.param(
            lambda b: b.see(volume("pv", storage_class="static", version="8")),
            'ClaimRef got reset for pv "pv"',
            id="the claim was taken out of the volume",
        ),
        pytest.param(
            lambda b: b.see(
                volume("pv", storage_class="static", claim="static", version="8", affinity=on_label(ZONE, "b"))
            ),
            'pv "pv" node affinity doesn\'t match node "n": no matching NodeSelectorTerms',
            id="the volume cannot be reached any more",
        ),
        pytest.param(
            lambda b: b.cluster.remove(volume("pv")),
            'failed to check binding: persistentvolumes "pv" not found',
            id="the volume is gone",
        ),
        pytest.param(
            lambda b: b.cluster.remove(claim("static")),
            'failed to check binding: persistentvolumeclaims "default/static" not found',
            id="the claim is gone",
        ),
        pytest.param(
            lambda b: (b.see(BOUND_VOLUME, BOUND_CLAIM), b.cluster.remove(claim("made"))),
            'failed to check provisioning pvc: persistentvolumeclaims "default/made" not found',
            id="the claim to be provisioned is gone",
        ),
        pytest.param(
            lambda b: b.see(BOUND_VOLUME, BOUND_CLAIM, claim("made", storage_class="made", version="9")),
            'selectedNode annotation reset for PVC "made"',
            id="the claim has no annotations any more",
        ),
        pytest.param(
            lambda b: b.see(
                BOUND_VOLUME, BOUND_CLAIM, claim("made", storage_class="made", version="9", annotations={"x": "y"})
            ),
            'provisioning failed for PVC "made"',
            id="the provisioner gave the claim back",
        ),
        pytest.param(
            lambda b: b.see(
                BOUND_VOLUME, BOUND_CLAIM, MADE_CLAIM, volume("new", storage_class="made", affinity=on_label(ZONE, "b"))
            ),
            'pv "new" node affinity doesn\'t match node "n": no matching NodeSelectorTerms',
            id="the new volume was made elsewhere",
        ),
        pytest.param(
            lambda b: b.cluster.remove(node("n")),
            'failed to get node "n": node "n" not found',
            id="the node is gone",
        ),
    ],
)
def test_waiting_ends_in_an_error_when_the_binding_was_undone(
    arrive: Callable[[Binding], object], message: str
) -> None:
    binding = Binding()
    binding.write_all()
    arrive(binding)
    assert binding.wait.is_settled()
    assert binding.outcome(Done()) == Status.error(f"binding volumes: {message}")


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param((BOUND_CLAIM,), id="the written volume was not seen yet"),
        pytest.param((BOUND_VOLUME,), id="the claim is not bound yet"),
        pytest.param((BOUND_VOLUME, BOUND_CLAIM), id="the written claim was not seen yet"),
        pytest.param((BOUND_VOLUME, BOUND_CLAIM, MADE_CLAIM), id="the new volume was not seen yet"),
        pytest.param(
            (
                BOUND_VOLUME,
                BOUND_CLAIM,
                NEW_VOLUME,
                claim("made", volume="new", bound=False, annotations={SELECTED: "n"}, version="10"),
            ),
            id="the controller has not finished with the claim",
        ),
    ],
)
def test_it_waits_on_while_something_is_missing(objects: tuple[KubeObject, ...]) -> None:
    binding = Binding()
    binding.write_all()
    binding.see(*objects)
    assert not binding.wait.is_settled()


@pytest.mark.parametrize(
    ("end", "message"),
    [
        pytest.param(
            Failed("context deadline exceeded"), "binding volumes: context deadline exceeded", id="time is up"
        ),
        pytest.param(
            Failed('pod does not exist any more: pod "p" not found', is_gone=True),
            'binding volumes: pod does not exist any more: pod "p" not found',
            id="the pod was deleted",
        ),
    ],
)
def test_waiting_can_be_given_up(end: Failed, message: str) -> None:
    binding = Binding()
    binding.write_all()
    assert binding.outcome(end) == Status.error(message)


def test_a_failed_write_ends_it_and_frees_what_was_not_written() -> None:
    binding = Binding()
    next(binding.steps)
    assert binding.outcome(Failed("conflict")) == Status.error("conflict")
    assert _is_free(binding, "pv")


def test_a_volume_that_was_written_stays_assumed_when_the_next_write_fails() -> None:
    binding = Binding()
    next(binding.steps)
    binding.steps.send(Written("8"))
    assert binding.outcome(Failed("conflict")) == Status.error("conflict")
    assert not _is_free(binding, "pv")
    binding.plugin.unreserve(binding.cycle, binding.info, "n")
    assert not _is_free(binding, "pv")


def test_writes_without_versions_are_not_compared() -> None:
    binding = Binding()
    next(binding.steps)
    binding.steps.send(Done())
    binding.steps.send(Done())
    binding.see(BOUND_VOLUME, BOUND_CLAIM, NEW_VOLUME, MADE_CLAIM)
    assert binding.outcome(Done()) == OK


def _is_free(binding: Binding, name: str) -> bool:
    """Whether another pod's claim can be given the volume."""
    binding.see(claim("nominated pod", storage_class="static"))
    cycle, nominated_pod = CycleState(), binding.cluster.info(pod("nominated pod", "nominated pod"))
    binding.plugin.pre_filter(cycle, nominated_pod, binding.cluster.nodes)
    verdicts = binding.plugin.filter(cycle, nominated_pod, binding.cluster.nodes)
    return name in binding.cluster.objects.persistent_volumes and not verdicts.reasons


@pytest.mark.parametrize(
    ("version", "api"), [("1.13", "v1alpha1"), ("1.14", "v1alpha1"), ("1.17", "v1alpha1"), ("1.18", "v1alpha2")]
)
def test_an_older_scheduler_waits_as_long_as_its_configuration_says(version: str, api: str) -> None:
    generation = generation_of(version)
    assert generation is not None
    config = {
        "apiVersion": f"kubescheduler.config.k8s.io/{api}",
        "kind": "KubeSchedulerConfiguration",
        "bindTimeoutSeconds": 7,
    }
    emulation = emulate(generation, config=config)
    binding = Binding()
    [wanted] = [plugin for plugin in emulation.profiles[0].filters if plugin.kind == "VolumeBinding"]
    plugin = build_plugin(wanted, binding.cluster, generation)
    assert isinstance(plugin, OlderVolumeBinding)
    binding.plugin.unreserve(binding.cycle, binding.info, "n")
    cycle = CycleState()
    plugin.pre_filter(cycle, binding.info, binding.cluster.nodes)
    plugin.filter_node(cycle, binding.info, binding.cluster.nodes.at(0))
    plugin.reserve(cycle, binding.info, "n")
    steps = plugin.pre_bind(cycle, binding.info, "n")
    next(steps)
    steps.send(Written("8"))
    waiting = steps.send(Written("9"))
    assert isinstance(waiting, WaitUntil)
    assert waiting.timeout_s == 7.0
