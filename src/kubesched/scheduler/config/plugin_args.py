"""The arguments of the in-tree plugins, one struct per kind, with their defaults; and what all structs share.

The structs of this package hold the configuration as it stands after defaulting. A field that a file leaves out, or
sets to null, takes the struct's default. The text under a field is its description in
`docs/reference/configuration.md`. A struct of arguments is named after its `kind`; `ARGS_BY_PLUGIN` says which plugin
takes which.

Next: `configuration` for the whole, `defaults` for rules that need more than a default value, `validation` for what is
allowed.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from kubesched.k8s.model.core import NodeAffinity, TopologySpreadConstraint
from kubesched.k8s.model.times import Duration

API_VERSION = "kubescheduler.config.k8s.io/v1"

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class ConfigStruct(msgspec.Struct, frozen=True, rename="camel"):
    """Written to a manifest with every field, so that a reader sees the defaults."""


class SparseConfigStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Written to a manifest with only the fields that say something."""


class ResourceSpec(ConfigStruct, frozen=True):
    """A resource and how much it counts."""

    name: str = ""
    """The resource's name, such as `cpu` or `nvidia.com/gpu`."""
    weight: Int64 = 1
    """How much it counts, from 1 to 100. 0 is taken as 1."""


class UtilizationShapePoint(ConfigStruct, frozen=True):
    """A point of a scoring function; between points the function is a straight line."""

    utilization: Int32 = 0
    """Use of the resource in percent, from 0 to 100."""
    score: Int32 = 0
    """The score at that use, from 0 to 10."""


class RequestedToCapacityRatioParam(ConfigStruct, frozen=True):
    """What the strategy `RequestedToCapacityRatio` needs to know."""

    shape: tuple[UtilizationShapePoint, ...] = ()
    """The scoring function; points in increasing order of utilization."""


DEFAULT_RESOURCES: Final = (ResourceSpec("cpu", 1), ResourceSpec("memory", 1))

LEAST_ALLOCATED: Final = "LeastAllocated"
MOST_ALLOCATED: Final = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO: Final = "RequestedToCapacityRatio"


class ScoringStrategy(ConfigStruct, frozen=True):
    """How the resources of a node make its score."""

    type: str = ""
    """`LeastAllocated`, `MostAllocated` or `RequestedToCapacityRatio`; must be given when the strategy is given."""
    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """The resources that count."""
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None
    """Must be given for `RequestedToCapacityRatio`, and only for it."""


class DefaultPreemptionArgs(ConfigStruct, frozen=True):
    """Arguments of DefaultPreemption: on how many nodes it tries an eviction before it chooses one."""

    min_candidate_nodes_percentage: Int32 = 10
    """At least so many percent of the nodes, from 0 to 100."""
    min_candidate_nodes_absolute: Int32 = 100
    """At least so many nodes. Not both may be 0."""

    @property
    def stops_at_broken_budget(self) -> bool:
        return False


class DynamicResourcesArgs(ConfigStruct, frozen=True):
    """Arguments of DynamicResources."""

    filter_timeout: Duration = Duration.of_seconds(10)
    """How long the search for devices may take in a decision, counted in work, not time; `0s` for no limit."""
    binding_timeout: Duration = Duration.of_seconds(600)
    """How long to wait, before binding, for the binding conditions of devices; at least `1s`."""


class InterPodAffinityArgs(ConfigStruct, frozen=True):
    """Arguments of InterPodAffinity."""

    hard_pod_affinity_weight: Int32 = 1
    """What a required affinity of an existing pod to the pod at hand adds to a node's score, from 0 to 100."""
    ignore_preferred_terms_of_existing_pods: bool = False
    """Leave preferred terms of existing pods out of the score, unless the pod at hand has affinity terms itself."""


class NodeAffinityArgs(ConfigStruct, frozen=True):
    """Arguments of NodeAffinity."""

    added_affinity: NodeAffinity | None = None
    """Node affinity that every pod of the profile has to meet in addition to its own."""


class NodeResourcesBalancedAllocationArgs(ConfigStruct, frozen=True):
    """Arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ResourceSpec, ...] = DEFAULT_RESOURCES
    """The resources to keep in balance; every weight must be 1."""


class NodeResourcesFitArgs(ConfigStruct, frozen=True):
    """Arguments of NodeResourcesFit."""

    ignored_resources: tuple[str, ...] = ()
    """Resources that the filter does not look at. The score does."""
    ignored_resource_groups: tuple[str, ...] = ()
    """Groups of resources that the filter does not look at: `example.com` stands for all of `example.com/…`."""
    scoring_strategy: ScoringStrategy = ScoringStrategy(LEAST_ALLOCATED)
    """How nodes are scored."""


SYSTEM_DEFAULTING: Final = "System"
LIST_DEFAULTING: Final = "List"


class PodTopologySpreadArgs(ConfigStruct, frozen=True):
    """Arguments of PodTopologySpread: constraints for pods that have none."""

    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """The constraints, without label selectors: those follow from the pod's Service, ReplicaSet and so on."""
    defaulting_type: str = SYSTEM_DEFAULTING
    """`System`: the built-in constraints over hosts and zones. `List`: `defaultConstraints`."""


class VolumeBindingArgs(ConfigStruct, frozen=True):
    """Arguments of VolumeBinding."""

    bind_timeout_seconds: Int64 = 600
    """How long to wait for volumes to be bound; 0 for no waiting."""
    shape: tuple[UtilizationShapePoint, ...] | None = None
    """Refused: it needs the feature gate StorageCapacityScoring, which is off in Kubernetes 1.36."""


PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)
"""Arguments of any in-tree plugin that takes some."""

ARGS_BY_PLUGIN: Final[dict[str, type[PluginArgs]]] = {
    kind.__name__.removesuffix("Args"): kind
    for kind in (
        DefaultPreemptionArgs,
        DynamicResourcesArgs,
        InterPodAffinityArgs,
        NodeAffinityArgs,
        NodeResourcesBalancedAllocationArgs,
        NodeResourcesFitArgs,
        PodTopologySpreadArgs,
        VolumeBindingArgs,
    )
}
"""The kind of arguments of each in-tree plugin that takes some, by the plugin's name."""
