"""From an older configuration to today's: a manifest of v1, and notes on what was changed or dropped.

Of a Policy, predicates become filters that run or do not, priorities become score plugins with their weights. Label
rules become an affinity that is added to every pod's. What has no successor is dropped, with a note.

Next: `component_config` for the versions before v1.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kubesched.older.config import names
from kubesched.older.config.component_config import (
    DISK_LIMITS,
    GONE,
    OLDER_API_VERSIONS,
    STRATEGIES,
    NodePreferences,
    Translation,
    convert_component_config,
)
from kubesched.older.config.emulated import AUTOSCALER_PROVIDER, PROVIDERS
from kubesched.older.config.policy import Policy, PredicatePolicy, PriorityPolicy, RatioArgument, is_policy, load_policy
from kubesched.older.config.policy_profile import ratio_args
from kubesched.scheduler.config.configuration import KubeSchedulerConfiguration, plain
from kubesched.scheduler.config.errors import ConfigError, ErrorList
from kubesched.scheduler.config.load import KIND, load, parse

_SAID_BY_TAINTS = "node conditions are taints today, which TaintToleration looks at"
_DEFAULT_SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]


def manifest_of_policy(policy: Policy) -> Translation:
    """Unknown names are errors that list what exists."""
    _check_known(policy)
    conversion = PolicyConversion(policy)
    conversion.run()
    return conversion.translation


def _check_known(policy: Policy) -> None:
    errors = ErrorList()
    names.check_list("predicates", policy.predicates, names.EVERY_PREDICATE, errors)
    names.check_list("priorities", policy.priorities, frozenset(names.PLUGINS_OF_PRIORITIES), errors)
    if errors:
        raise ConfigError(errors)


class PolicyConversion:
    def __init__(self, policy: Policy) -> None:
        self.translation = Translation()
        self._policy = policy
        self._preferences = NodePreferences()
        self._weights: dict[str, int] = {}

    def run(self) -> None:
        self._note_what_later_versions_refused()
        self._filters()
        self._scores()
        affinity = self._preferences.added_affinity()
        if affinity:
            self.translation.set_args("NodeAffinity", {"addedAffinity": affinity})
        self._rest()

    def _note_what_later_versions_refused(self) -> None:
        """v1.14 took it, and what it means is plain; v1.17 to v1.22 did not start with it."""
        refused = "v1.17 and later refused such a Policy"
        named = {predicate.name for predicate in self._policy.predicates or () if predicate.argument is None}
        if names.GENERAL_PREDICATES in named:
            parts = names.PLUGINS_OF_PREDICATES[names.GENERAL_PREDICATES]
            for name in sorted(named - {names.GENERAL_PREDICATES}):
                if names.PLUGINS_OF_PREDICATES.get(name, ("",))[0] in parts:
                    self.translation.note(f"{name}: is a part of {names.GENERAL_PREDICATES}, too: {refused}")
        custom = [priority for priority in self._policy.priorities or () if priority.argument is not None]
        for kind in ("label_preference", "service_anti_affinity"):
            alike = [priority for priority in custom if getattr(priority.argument, kind) is not None]
            for priority in alike[1:]:
                if priority.weight != alike[0].weight:
                    self.translation.note(f"{priority.name}: has a different weight with {alike[0].name}: {refused}")

    def _filters(self) -> None:
        if self._policy.predicates is None:
            self.translation.note("predicates: not given, so today's default filters run")
            return
        kept: set[str] = set()
        for predicate in self._policy.predicates:
            kept.update(self._filters_of(predicate))
        if self._preferences.are_required:
            kept.add("NodeAffinity")
        self.translation.keep_filters(kept)

    def _filters_of(self, predicate: PredicatePolicy) -> set[str]:
        argument = predicate.argument
        if argument is not None and argument.service_affinity is not None:
            self._drop(predicate.name, GONE["ServiceAffinity"])
            return set()
        if argument is not None and argument.labels_presence is not None:
            for label in argument.labels_presence.labels:
                self._preferences.require(label, present=argument.labels_presence.presence)
            self.translation.note(f"{predicate.name}: became an affinity that is added to every pod's (NodeAffinity)")
            return set()
        name = "PodFitsHostPorts" if predicate.name == names.POD_FITS_PORTS else predicate.name
        if name in (names.LABEL_PRESENCE, names.SERVICE_AFFINITY):
            self._drop(name, "it says nothing without an argument")
            return set()
        kinds = names.PLUGINS_OF_PREDICATES[name]
        if kinds[0].startswith("CheckNode"):
            self._drop(name, _SAID_BY_TAINTS)
            return set()
        found = {"NodeVolumeLimits" if kind in DISK_LIMITS else kind for kind in kinds}
        if not found.issubset(kinds):
            self.translation.note(f"{name}: limits of attached volumes are NodeVolumeLimits' business, for all drivers")
        return found

    def _scores(self) -> None:
        if self._policy.priorities is None:
            self.translation.note("priorities: not given, so today's default score plugins run")
            return
        strategies: list[tuple[int, str, RatioArgument | None]] = []
        for priority in self._policy.priorities:
            kind = self._score_of(priority)
            if kind in STRATEGIES:
                ratio = None if priority.argument is None else priority.argument.requested_to_capacity_ratio_arguments
                strategies.append((priority.weight, kind, ratio))
            elif kind:
                self._weights[kind] = max(self._weights.get(kind, 0), priority.weight)
        self._use_strategy(strategies)
        if self._preferences.are_preferred:
            self._weights.setdefault("NodeAffinity", 1)
        self.translation.disable("score", "*")
        for kind, weight in self._weights.items():
            self.translation.enable("score", kind, weight)

    def _score_of(self, priority: PriorityPolicy) -> str:
        """Today's score plugin; empty if there is none."""
        argument = priority.argument
        if argument is not None and argument.service_anti_affinity is not None:
            label = argument.service_anti_affinity.label
            self._drop(priority.name, f'give PodTopologySpread a default constraint over "{label}" instead')
            return ""
        if argument is not None and argument.label_preference is not None:
            preference = argument.label_preference
            self._preferences.prefer(preference.label, priority.weight, present=preference.presence)
            self.translation.note(f"{priority.name}: became an affinity that is added to every pod's (NodeAffinity)")
            return ""
        kind = "RequestedToCapacityRatio" if argument is not None else names.PLUGINS_OF_PRIORITIES[priority.name]
        if kind == names.EQUAL_PRIORITY:
            self._drop(priority.name, "it never changed a decision")
            return ""
        if kind in GONE:
            self._drop(priority.name, GONE[kind])
            return ""
        if kind == "SelectorSpread":
            self.translation.note(f"{priority.name}: PodTopologySpread's default constraints do this today")
            return "PodTopologySpread"
        return kind

    def _use_strategy(self, strategies: list[tuple[int, str, RatioArgument | None]]) -> None:
        """NodeResourcesFit has one strategy: that of the greatest weight."""
        if not strategies:
            return
        strategies.sort(key=lambda found: -found[0])
        weight, kind, ratio = strategies[0]
        strategy: dict[str, Any] = {"type": STRATEGIES[kind]}
        if kind == "RequestedToCapacityRatio":
            args = {"shape": _DEFAULT_SHAPE, "resources": []} if ratio is None else ratio_args(ratio)
            strategy["requestedToCapacityRatio"] = {"shape": args["shape"]}
            if args["resources"]:
                strategy["resources"] = [entry | {"weight": entry["weight"] or 1} for entry in args["resources"]]
        self.translation.set_args("NodeResourcesFit", {"scoringStrategy": strategy})
        self.translation.note(f"{kind}: is a strategy of NodeResourcesFit today")
        for _, other, _ in strategies[1:]:
            self._drop(other, "NodeResourcesFit has one scoring strategy, and another weighs more")
        self._weights["NodeResourcesFit"] = weight

    def _rest(self) -> None:
        if self._policy.hard_pod_affinity_symmetric_weight:
            weight = self._policy.hard_pod_affinity_symmetric_weight
            self.translation.set_args("InterPodAffinity", {"hardPodAffinityWeight": weight})
        if self._policy.always_check_all_predicates:
            self._drop("alwaysCheckAllPredicates", "`kubesched explain -o wide` shows every reason against a node")
        if self._policy.extenders:
            self.translation.fields["extenders"] = [plain(extender) for extender in self._policy.extenders]

    def _drop(self, name: str, why: str) -> None:
        self.translation.note(f"{name}: dropped: {why}")


@dataclass(frozen=True)
class Converted:
    """`manifest` says only what differs from the defaults; `notes` are for the user, one line each."""

    config: KubeSchedulerConfiguration
    manifest: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_any(data: bytes | str | dict[str, Any], source: str) -> Converted:
    """A configuration of whatever age: v1 as it is, a Policy or an older version translated."""
    errors = ErrorList()
    value = data if isinstance(data, dict) else parse(data, source, errors)
    if errors:
        raise ConfigError(errors, source)
    if is_policy(value):
        return convert_policy(load_policy(value, source), source)
    if isinstance(value, dict) and value.get("apiVersion") in OLDER_API_VERSIONS and value.get("kind") == KIND:
        return _loaded(convert_component_config(value), source)
    return Converted(load(data, source), value if isinstance(value, dict) else {})


def convert_policy(policy: Policy, source: str) -> Converted:
    return _loaded(manifest_of_policy(policy), source)


def convert_provider(provider: str) -> Converted:
    """The default set is today's; the autoscaler's prefers full nodes."""
    if provider not in PROVIDERS:
        errors = ErrorList()
        errors.unsupported("algorithmProvider", provider, PROVIDERS)
        raise ConfigError(errors)
    translation = Translation()
    if provider == AUTOSCALER_PROVIDER:
        translation.set_args("NodeResourcesFit", {"scoringStrategy": {"type": "MostAllocated"}})
    translation.note(f"algorithm provider {provider}: its plugins and weights are those of today's default profile")
    return _loaded(translation, provider)


def _loaded(translation: Translation, source: str) -> Converted:
    manifest = translation.manifest()
    return Converted(load(manifest, source), manifest, tuple(translation.notes))
