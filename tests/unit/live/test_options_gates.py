"""Feature gates are set as in kube-scheduler; what kubesched cannot do is refused."""

from __future__ import annotations

import pytest

from kubesched.live.options import FeatureGates, FlagError
from kubesched.live.options.flag import GATES
from kubesched.live.options.read import read_gates
from kubesched.scheduler.config.feature_gates import (
    GATE_NEEDS,
    GATES_OF_NEXT,
    GATES_WITHOUT_EFFECT,
    KNOWN_GATES,
    REFUSED_GATES,
    GateStage,
)


def _read(text: str) -> tuple[FeatureGates, tuple[str, ...]]:
    return read_gates(GATES.parse(text))


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        pytest.param("", {}, id="nothing"),
        pytest.param("WatchListClient=false", {"WatchListClient": False}, id="one without effect"),
        pytest.param("kube:HPAScaleToZero=1", {"HPAScaleToZero": True}, id="with the component"),
        pytest.param("HPAScaleToZero=true,HPAScaleToZero=false", {}, id="the last one counts"),
        pytest.param("GenericWorkload=false,SchedulerAsyncPreemption=true", {}, id="defaults of those refused"),
        pytest.param("DynamicResourceAllocation=true", {}, id="a locked one at its value"),
        pytest.param("HPAScaleToZero=true", {"HPAScaleToZero": True}, id="one of another component"),
        pytest.param("AllAlpha=false", {}, id="a whole stage as it is"),
    ],
)
def test_gates_are_set(text: str, changed: dict[str, bool]) -> None:
    assert _read(text)[0].changed == changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("Nope=true", "unrecognized feature gate: Nope", id="unknown"),
        pytest.param("GenericWorkload", "missing bool value for GenericWorkload", id="no value"),
        pytest.param(
            "GenericWorkload=on",
            'invalid value of GenericWorkload=on, err: strconv.ParseBool: parsing "on": invalid syntax',
            id="no bool",
        ),
        pytest.param(
            "DynamicResourceAllocation=false",
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
            id="locked",
        ),
        pytest.param(
            "SidecarContainers=false,SchedulerQueueingHints=false",
            "[cannot set feature gate SidecarContainers to false, feature is locked to true, "
            "cannot set feature gate SchedulerQueueingHints to false, feature is locked to true]",
            id="two that are locked",
        ),
        pytest.param(
            "GangScheduling=true",
            "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
            id="one that lacks another",
        ),
        pytest.param(
            "NativeHistograms=true",
            "cannot set feature gate NativeHistograms to true: native histograms are not implemented",
            id="not implemented",
        ),
        pytest.param(
            "kube:ComponentFlagz=true,ComponentStatusz=true",
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use",
            id="with and without the component",
        ),
        pytest.param("wardle:A=true", "component not registered: wardle", id="another component"),
    ],
)
def test_mistakes_are_told_in_the_words_of_kubernetes(text: str, message: str) -> None:
    with pytest.raises(FlagError) as error:
        _read(text)
    assert error.value.message == message


def test_a_whole_stage_is_refused_for_the_gates_in_it_that_are() -> None:
    with pytest.raises(FlagError) as error:
        _read("AllAlpha=true")
    refused = {name for name in REFUSED_GATES if KNOWN_GATES[name].stage is GateStage.ALPHA}
    assert all(f"cannot set feature gate {name} to true (through AllAlpha): " in str(error.value) for name in refused)


def test_a_whole_stage_may_leave_nothing_for_others_to_depend_on() -> None:
    with pytest.raises(FlagError, match="StaleControllerConsistencyJob is enabled, but depends on"):
        _read("AllBeta=false,StaleControllerConsistencyJob=true")


def test_a_gate_asked_for_by_name_does_not_follow_its_stage() -> None:
    refused = [name for name in REFUSED_GATES if KNOWN_GATES[name].stage is GateStage.ALPHA]
    needing = [name for name, needs in GATE_NEEDS.items() if set(needs) & set(refused)]
    named = ",".join(f"{name}=false" for name in {*refused, *needing})
    gates, _ = _read(f"AllAlpha=true,{named}")
    assert gates["AllAlpha"]
    assert gates["HPAScaleToZero"]
    assert not any(gates[name] for name in refused)


def test_gates_that_will_go_or_do_nothing_are_warned_of() -> None:
    _, warnings = _read("DynamicResourceAllocation=true,WatchListClient=false,ComponentFlagz=true")
    assert warnings == (
        "setting GA feature gate DynamicResourceAllocation=true. It will be removed in a future release.",
        "feature gate WatchListClient=false has no effect: it concerns Go's client",
    )


def test_gates_are_a_mapping_of_all_that_are_known() -> None:
    gates = FeatureGates()
    assert dict(gates) == {name: spec.default for name, spec in KNOWN_GATES.items()}
    with pytest.raises(KeyError):
        gates["Nope"]


def test_the_tables_of_gates_agree() -> None:
    effects = [*REFUSED_GATES, *GATES_WITHOUT_EFFECT]
    assert len(effects) == len(set(effects))
    assert not [name for name in effects if KNOWN_GATES[name].is_locked]
    for name, needs in GATE_NEEDS.items():
        default = {**KNOWN_GATES, **GATES_OF_NEXT}[name].default
        assert not default or all(KNOWN_GATES[need].default for need in needs)


def test_the_defaults_that_matter_to_a_scheduler() -> None:
    on_locked = "DynamicResourceAllocation DRAAdminAccess SchedulerQueueingHints NodeInclusionPolicyInPodTopologySpread"
    on = (
        "SchedulerAsyncPreemption SchedulerPopFromBackoffQ OpportunisticBatching NodeDeclaredFeatures PodLevelResources"
    )
    off = "SchedulerAsyncAPICalls DRADeviceTaintRules CoordinatedLeaderElection GenericWorkload GangScheduling"
    gates = FeatureGates()
    assert all(gates[name] and KNOWN_GATES[name].is_locked for name in on_locked.split())
    assert all(gates[name] and not KNOWN_GATES[name].is_locked for name in on.split())
    assert not any(gates[name] for name in off.split())
