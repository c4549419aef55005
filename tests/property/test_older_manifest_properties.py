"""Whatever Policy an older scheduler runs: the file that is written of it gives the same scheduler again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from kubesched.older.config import EMULATED_VERSIONS, EmulatedProfile, Emulation, PolicyFile, emulate, generation_of
from kubesched.older.config.emulated import RefusedConfigurationError
from kubesched.older.config.names import PLUGINS_OF_PREDICATES, PLUGINS_OF_PRIORITIES
from kubesched.older.config.running import losses, manifest_of_then

Manifest = dict[str, Any]
REFERENCE = PolicyFile("/etc/policy.json")

_LABELS = st.lists(st.sampled_from(("disk", "zone", "rack")), min_size=1, max_size=2, unique=True)
_PREDICATES = st.lists(
    st.one_of(
        st.sampled_from(sorted(PLUGINS_OF_PREDICATES)).map(lambda name: {"name": name}),
        st.builds(
            lambda labels, presence: {
                "name": "HasLabels",
                "argument": {"labelsPresence": {"labels": labels, "presence": presence}},
            },
            _LABELS,
            st.booleans(),
        ),
        _LABELS.map(lambda labels: {"name": "Together", "argument": {"serviceAffinity": {"labels": labels}}}),
    ),
    max_size=5,
)
_PRIORITY_NAMES = st.sampled_from(sorted(PLUGINS_OF_PRIORITIES))
_WEIGHTS = st.sampled_from((1, 1, 2, 10))
_PRIORITIES = st.lists(
    st.one_of(
        st.builds(
            lambda name, weight: {"name": name, "weight": weight},
            st.sampled_from(sorted(PLUGINS_OF_PRIORITIES)),
            _WEIGHTS,
        ),
        st.builds(
            lambda label, weight: {
                "name": f"prefers-{label}",
                "weight": weight,
                "argument": {"labelPreference": {"label": label, "presence": True}},
            },
            st.sampled_from(("ssd", "gpu")),
            _WEIGHTS,
        ),
        _WEIGHTS.map(
            lambda weight: {
                "name": "ratio",
                "weight": weight,
                "argument": {
                    "requestedToCapacityRatioArguments": {
                        "shape": [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}],
                        "resources": [{"name": "cpu", "weight": 1}],
                    }
                },
            }
        ),
    ),
    max_size=5,
)
_EXTENDERS = st.sampled_from(
    (
        [],
        [],
        [{"urlPrefix": "http://e", "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}],
    )
)


@st.composite
def policies(draw: st.DrawFn) -> Manifest:
    found: Manifest = {"kind": "Policy", "extenders": draw(_EXTENDERS)}
    if draw(st.booleans()):
        found["predicates"] = draw(_PREDICATES)
    if draw(st.booleans()):
        found["priorities"] = draw(_PRIORITIES)
    if draw(st.booleans()):
        found["hardPodAffinitySymmetricWeight"] = draw(st.integers(1, 100))
    return found


def what_runs(profile: EmulatedProfile) -> object:
    filters = [(plugin.kind, plugin.name) for plugin in profile.filters]
    scores = [(plugin.kind, plugin.name, plugin.weight) for plugin in profile.scores]
    return filters, scores, dict(profile.beside), profile.preempts, profile.checks_all


def check(version: str, policy: Manifest, written: Callable[[Emulation], Manifest]) -> None:
    generation = generation_of(version)
    assert generation is not None
    try:
        first = emulate(generation, policy=policy, reference=REFERENCE)
    except RefusedConfigurationError:
        event("refused")
        assume(False)
    assert losses(first) == []
    manifest = yaml.safe_load(yaml.safe_dump(written(first)))
    needs_policy = "policy" in manifest.get("algorithmSource", {})
    event(f"{manifest['apiVersion'].rpartition('/')[2]}, {'by its Policy' if needs_policy else 'by its plugins'}")
    again = emulate(generation, config=manifest, policy=policy if needs_policy else None)
    [before], [after] = first.profiles, again.profiles
    assert what_runs(after) == what_runs(before)
    for one, other in zip((*before.filters, *before.scores), (*after.filters, *after.scores), strict=True):
        assert one.args.items() <= other.args.items()
    assert again.config.extenders == first.config.extenders


@given(st.sampled_from(EMULATED_VERSIONS), policies())
@settings(max_examples=150)
def test_a_written_configuration_gives_the_same_scheduler(version: str, policy: Manifest) -> None:
    check(version, policy, manifest_of_then)


def _forgetting_weights(emulation: Emulation) -> Manifest:
    found = manifest_of_then(emulation)
    for profile in found.get("profiles", ()):
        for entry in profile["plugins"].get("score", {}).get("enabled", ()):
            del entry["weight"]
    return found


@given(policies())
@settings(max_examples=300, database=None)
def _weights_are_forgotten(policy: Manifest) -> None:
    check("1.19", policy, _forgetting_weights)


def test_weights_that_are_forgotten_are_found() -> None:
    with pytest.raises(AssertionError):
        _weights_are_forgotten()
