"""What distinguishes the schedulers of older versions: one table, one row per version; and their feature gates.

A plugin of `kubesched.older.plugins`, the emulated cycle and the Policy reader ask this table and nothing else about
the version that they stand for. The last patch release of each minor version is meant. Gates are those that were given,
over the defaults of that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from kubesched.scheduler.config.errors import ConfigError, FieldError
from kubesched.scheduler.config.feature_gates import EMULATED_IN_CONFIG

PRESENT = "1.36"
"""The version that decides where none is asked for."""


EVEN_PODS_SPREAD = "EvenPodsSpread"
RESOURCE_LIMITS = "ResourceLimitsPriorityFunction"
TAINT_NODES_BY_CONDITION = "TaintNodesByCondition"


class VolumeTrouble(Enum):
    """What a broken claim does to a pod's cycle."""

    ERROR = "error"
    """The cycle ends in an error."""
    FILTER = "filter"
    """Every node is rejected for it."""
    PRE_FILTER = "prefilter"
    """The pod is rejected as a whole."""


class BudgetRule(Enum):
    """How disruption budgets protect victims."""

    ANY_LEFT = "any left"
    """A budget protects while it allows none; victims do not use it up."""
    COUNT_DOWN = "count down"
    """Victims use budgets up; the first that has nothing left ends the count."""
    COUNT_DOWN_ALL = "count down all"
    """Victims use up every budget that covers them, but those that count them as disrupted already."""


@dataclass(frozen=True)
class Generation:
    """The facts of one version."""

    version: str
    config_versions: tuple[str, ...]
    """The component configurations that it read, in `kubescheduler.config.k8s.io`."""
    highest_score: int = 100
    """Of one plugin, or priority function."""
    has_predicates: bool = False
    """Filters and scores are predicates and priorities, and carry their names."""
    one_reason_per_node: bool = False
    """Of all reasons of a plugin only the first counts, or the first that evictions cannot remove."""
    checks_all_on_request: bool = True
    """`alwaysCheckAllPredicates` of a Policy has an effect."""
    hard_affinity_weight_of_policy: bool = True
    """`hardPodAffinitySymmetricWeight` of a Policy has an effect."""
    counts_init_containers: bool = True
    """On nodes and in scores; a pod's own requests always count them."""
    counts_overhead: bool = True
    too_many_pods: str = "Too many pods"
    names_the_taint: bool = True
    stable_zone_labels: bool = True
    """`topology.kubernetes.io/zone` tells the zone that pods are spread over, too."""
    stable_volume_zones: bool = False
    """The same for the zones of volumes."""
    affinity_before_others: bool = False
    """Inter-pod affinity looks at the pod's own rules first, and wants the topology label for its first pod, too."""
    affinity_by_pod: bool = False
    """In trials, inter-pod affinity remembers pods by topology; later, numbers of terms."""
    affinity_mixes_namespaces: bool = False
    """In trials, a term of another pod that means its own namespace is taken to mean that of the new pod."""
    unknown_claims_count: bool = False
    """A claim that cannot be followed to its volume counts against every limit of attached volumes."""
    reads_csi_nodes: bool = True
    missing_volume: VolumeTrouble = VolumeTrouble.FILTER
    unbound_immediate: VolumeTrouble = VolumeTrouble.PRE_FILTER
    zone_of_broken_volume: VolumeTrouble = VolumeTrouble.FILTER
    unbound_zone_message: str = ""
    """What VolumeZone says of a claim that should have been bound; empty where that depends on its class."""
    filter_error: str = 'running "{plugin}" filter plugin for pod "{pod}": {message}'
    repeats_errors: bool = False
    """An error's message says on how many nodes it came up."""
    spread_by_domain_size: bool = False
    """Soft spread constraints weigh by the number of domains, and a missing label has a reason of its own."""
    spread_needs_counted_nodes: bool = False
    """Without any node that counts, hard spread constraints let every node pass, labelled or not."""
    spread_counts_terminating: bool = False
    spread_scores_all_namespaces: bool = False
    spread_weight: int = 2
    """Of PodTopologySpread in the default score plugins."""
    selector_spread_name: str = "SelectorSpread"
    selectors_count_each: bool = False
    """SelectorSpread counts the pods that any of the selectors matches, not those that all of them match."""
    skips_spread_pods: bool = True
    """SelectorSpread leaves pods with spread constraints of their own alone."""
    has_cinder_limits: bool = True
    reads_out_of_disk: bool = False
    """CheckNodeCondition goes by the condition OutOfDisk, too."""
    default_percentage_of_nodes: int = 0
    """percentageOfNodesToScore where none, or 0, is given; 0: by the size of the cluster."""
    images_by_container: bool = False
    """The most that images count for grows with the number of containers."""
    gates: Mapping[str, bool] = field(default_factory=dict)
    """The feature gates that change which plugins run, with their defaults."""
    overfull_counts_as_full: bool = False
    """For NodeResourcesMostAllocated a node with more requested than it has is the best; before, it was the worst."""
    ratio_needs_resources: bool = False
    """RequestedToCapacityRatio of a Policy scores nothing unless its resources are named."""
    ratio_averages_all: bool = False
    """It takes the plain mean of cpu and memory, rounded down; later ones leave out what scores 0 and round."""
    registers_functions: bool = False
    """Predicates and priorities are functions under names, and an argument makes a new one, whatever the name. Later
    ones look names up first, some of which are aliases, and know nothing but plugins."""
    sums_custom_weights: bool = False
    """Priorities that are merged into one plugin add their weights up; else the last weight counts as many times."""
    victims_by_start_time: bool = True
    budgets: BudgetRule = BudgetRule.COUNT_DOWN_ALL
    needs_victims: bool = True
    """A node without pods of lower priority is no candidate for preemption."""
    honours_preemption_policy: bool = True
    extension_points: tuple[str, ...] = ()
    """Those of its configuration, in the order in which plugins are put there; none before there were plugins."""
    plugins_beside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The plugins of the other points than filter and score, in the order of the provider."""
    provided_scores: tuple[str, ...] = ()
    """The order of the provider's score plugins, where it is not that of the priorities' names."""
    unknown_provider: str = 'algorithm provider "{provider}" is not registered'
    flags_beside_config: bool = False
    """Flags that name a Policy or a provider count beside a configuration file, which cannot name one."""
    repeats_problems: bool = False
    """Of several problems that are told at once, equal ones are told as often as there are."""
    overflow: str = "total priority of priority functions has overflown"
    """What is said of priorities whose weights are too large in sum."""
    message_limit: int | None = None
    """Longest message of an unschedulable pod."""
    volumes_are_a_plugin: bool = False
    """What fails about volumes after the decision fails in a plugin; before, the scheduler itself bound them."""
    binds_by_plugin: bool = True
    """A pod is bound by a plugin, which says so when that fails."""
    one_message_on_failure: bool = False
    """Event and condition of a pod that could not be bound say the same."""
    tells_late_failures_by_reason: bool = False
    """The condition of a pod that could not be bound has a reason that says so, and no message."""
    sets_probe_time: bool = False
    """Every failed attempt is written into the condition as its last probe."""
    victim_note: str = "Preempted by {preemptor} on node {node}"
    no_nodes_is_an_error: bool = False
    """In the metrics; the pod is told that it is unschedulable."""
    counts_disabled_preemption: bool = False
    """In the metrics, as an attempt without victims."""
    times_every_attempt: bool = False
    """Also those that did not come to a binding."""
    summaries_have_quantiles: bool = False
    prepares_apart: bool = False
    """Preparing filters is not part of the time they take, but preparing scores is."""


_V1_14 = Generation(
    "1.14",
    config_versions=("v1alpha1",),
    highest_score=10,
    has_predicates=True,
    counts_init_containers=False,
    counts_overhead=False,
    too_many_pods="Insufficient pods",
    names_the_taint=False,
    stable_zone_labels=False,
    affinity_by_pod=True,
    unknown_claims_count=True,
    reads_csi_nodes=False,
    missing_volume=VolumeTrouble.ERROR,
    unbound_immediate=VolumeTrouble.ERROR,
    zone_of_broken_volume=VolumeTrouble.ERROR,
    unbound_zone_message='PersistentVolumeClaim is not bound: "{claim}"',
    filter_error="{message}",
    repeats_errors=True,
    skips_spread_pods=False,
    gates={TAINT_NODES_BY_CONDITION: True, RESOURCE_LIMITS: False},
    ratio_averages_all=True,
    registers_functions=True,
    victims_by_start_time=False,
    budgets=BudgetRule.ANY_LEFT,
    needs_victims=False,
    honours_preemption_policy=False,
    binds_by_plugin=False,
    victim_note="by {preemptor} on node {node}",
    no_nodes_is_an_error=True,
    unknown_provider='plugin "{provider}" has not been registered',
    summaries_have_quantiles=True,
)

_V1_13 = replace(
    _V1_14,
    version="1.13",
    selectors_count_each=True,
    has_cinder_limits=False,
    reads_out_of_disk=True,
    default_percentage_of_nodes=50,
    tells_late_failures_by_reason=True,
    sets_probe_time=True,
    repeats_problems=True,
    overflow="Total priority of priority functions has overflown",
    counts_disabled_preemption=True,
)

_GENERATIONS = (
    _V1_13,
    _V1_14,
    Generation(
        "1.17",
        config_versions=("v1alpha1",),
        one_reason_per_node=True,
        checks_all_on_request=False,
        hard_affinity_weight_of_policy=False,
        counts_overhead=False,
        too_many_pods="Insufficient pods",
        names_the_taint=False,
        affinity_by_pod=True,
        missing_volume=VolumeTrouble.ERROR,
        unbound_immediate=VolumeTrouble.ERROR,
        zone_of_broken_volume=VolumeTrouble.ERROR,
        unbound_zone_message='PersistentVolumeClaim was not found: "{claim}"',
        filter_error='error while running "{plugin}" filter plugin for pod "{pod}": {message}',
        selector_spread_name="DefaultPodTopologySpread",
        skips_spread_pods=False,
        spread_needs_counted_nodes=True,
        spread_counts_terminating=True,
        spread_scores_all_namespaces=True,
        spread_weight=1,
        gates={EVEN_PODS_SPREAD: False, RESOURCE_LIMITS: False},
        registers_functions=True,
        sums_custom_weights=True,
        extension_points=(
            *("preFilter", "filter", "reserve", "postFilter", "score", "preBind"),
            *("bind", "postBind", "unreserve", "permit", "queueSort"),
        ),
        unknown_provider='provider "{provider}" is not registered',
        budgets=BudgetRule.ANY_LEFT,
        needs_victims=False,
        honours_preemption_policy=False,
        binds_by_plugin=False,
        prepares_apart=True,
    ),
    Generation(
        "1.18",
        config_versions=("v1alpha1", "v1alpha2"),
        affinity_mixes_namespaces=True,
        unbound_immediate=VolumeTrouble.FILTER,
        zone_of_broken_volume=VolumeTrouble.ERROR,
        selector_spread_name="DefaultPodTopologySpread",
        spread_weight=1,
        gates={EVEN_PODS_SPREAD: True, RESOURCE_LIMITS: False},
        extension_points=(
            *("preFilter", "filter", "reserve", "preScore", "score", "preBind"),
            *("bind", "postBind", "unreserve", "permit", "queueSort"),
        ),
        plugins_beside={
            "preFilter": ("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread"),
            "preScore": (
                *("InterPodAffinity", "DefaultPodTopologySpread", "TaintToleration"),
                *("PodTopologySpread", "NodeResourceLimits"),
            ),
            "bind": ("DefaultBinder",),
            "queueSort": ("PrioritySort",),
        },
        provided_scores=(
            *("NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity", "NodeResourcesLeastAllocated"),
            *("NodeResourcesMostAllocated", "NodeAffinity", "NodePreferAvoidPods", "DefaultPodTopologySpread"),
            *("TaintToleration", "PodTopologySpread", "NodeResourceLimits"),
        ),
        budgets=BudgetRule.COUNT_DOWN,
        needs_victims=False,
        honours_preemption_policy=False,
        prepares_apart=True,
    ),
    Generation(
        "1.19",
        config_versions=("v1beta1",),
        stable_volume_zones=True,
        affinity_before_others=True,
        spread_by_domain_size=True,
        images_by_container=True,
        overfull_counts_as_full=True,
        ratio_needs_resources=True,
        extension_points=(
            *("preFilter", "filter", "postFilter", "reserve", "preScore", "score", "preBind"),
            *("bind", "postBind", "permit", "queueSort"),
        ),
        plugins_beside={
            "preFilter": ("NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity", "VolumeBinding"),
            "postFilter": ("DefaultPreemption",),
            "preScore": ("InterPodAffinity", "PodTopologySpread", "TaintToleration", "SelectorSpread"),
            "reserve": ("VolumeBinding",),
            "preBind": ("VolumeBinding",),
            "bind": ("DefaultBinder",),
            "queueSort": ("PrioritySort",),
        },
        provided_scores=(
            *("NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity", "NodeResourcesLeastAllocated"),
            *("NodeResourcesMostAllocated", "NodeAffinity", "NodePreferAvoidPods", "PodTopologySpread"),
            *("TaintToleration", "SelectorSpread"),
        ),
        message_limit=1024,
        flags_beside_config=True,
        volumes_are_a_plugin=True,
        one_message_on_failure=True,
        times_every_attempt=True,
    ),
)

_BY_VERSION = {generation.version: generation for generation in _GENERATIONS}

EMULATED_VERSIONS = tuple(_BY_VERSION)
"""The versions whose decisions can be had."""


def _minor(version: str) -> str:
    return ".".join(version.removeprefix("v").split(".")[:2])


def emulated_in_config(version: str | None) -> str | None:
    """What `emulate` of today's configuration calls the version; None if it is none of those."""
    return None if version is None else next((one for one in EMULATED_IN_CONFIG if one == _minor(version)), None)


def generation_of(version: str) -> Generation | None:
    """The facts of an older version; None for the present one, and for those that have its configuration. An unknown
    version is an error that lists those known."""
    minor = _minor(version)
    if minor == PRESENT or emulated_in_config(version) is not None:
        return None
    found = _BY_VERSION.get(minor)
    if found is None:
        known = ", ".join((*EMULATED_VERSIONS, PRESENT, *EMULATED_IN_CONFIG))
        raise ConfigError([FieldError("emulate", f'version "{version}" is not known: there are {known}')])
    return found


@dataclass(frozen=True)
class OlderGates:
    values: Mapping[str, bool]

    def enabled(self, name: str) -> bool:
        """A gate that the version does not have is off."""
        return self.values.get(name, False)


def feature_gates(generation: Generation, given: Mapping[str, bool] | None) -> OlderGates:
    unknown = sorted((given or {}).keys() - generation.gates.keys())
    if unknown:
        known = ", ".join(sorted(generation.gates)) or "none"
        where = f"emulating {generation.version}, gates that matter: {known}"
        raise ConfigError([FieldError("featureGates", f'"{name}" is not known ({where})') for name in unknown])
    return OlderGates({**generation.gates, **(given or {})})
