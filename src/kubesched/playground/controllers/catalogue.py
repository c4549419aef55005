"""All controllers of a playground.

Next: any of the modules named here.
"""

from __future__ import annotations

from kubesched.k8s.model.apps import DaemonSet, Job, ReplicaSet, StatefulSet
from kubesched.k8s.model.core import ReplicationController
from kubesched.playground.controllers.budget_controller import BudgetController
from kubesched.playground.controllers.controller import Controller, ControllerContext
from kubesched.playground.controllers.cron_job_controller import CronJobController
from kubesched.playground.controllers.deployment_controller import DeploymentController
from kubesched.playground.controllers.device_claim_release import DeviceClaimRelease
from kubesched.playground.controllers.device_taint_eviction import DeviceTaintEvictionController
from kubesched.playground.controllers.discovered import DiscoveredKinds
from kubesched.playground.controllers.garbage_collector import GarbageCollector
from kubesched.playground.controllers.job_rules import JobPodRelease, JobRules
from kubesched.playground.controllers.namespace_controllers import NamespaceController, ServiceAccountController
from kubesched.playground.controllers.node_lifecycle import NodeLifecycleController
from kubesched.playground.controllers.pod_claim_controller import PodClaimController
from kubesched.playground.controllers.quota_controller import QuotaController
from kubesched.playground.controllers.role_aggregation import RoleAggregationController
from kubesched.playground.controllers.root_ca_publisher import RootCaPublisher
from kubesched.playground.controllers.taint_eviction import OrphanedPodController, TaintEvictionController
from kubesched.playground.controllers.volume_controllers import ClaimBinder, VolumeBinder
from kubesched.playground.controllers.volume_protection import (
    AttributesClassProtection,
    ClaimProtection,
    VolumeProtection,
)
from kubesched.playground.controllers.workload import WorkloadController
from kubesched.playground.controllers.workload_kinds import DaemonSetRules, ReplicaRules, StatefulSetRules


def all_controllers(context: ControllerContext, discovered: DiscoveredKinds, root_ca_pem: str = "") -> list[Controller]:
    """`root_ca_pem` is published in every namespace; without one, nothing is."""
    publishers = [RootCaPublisher(context, root_ca_pem)] if root_ca_pem else []
    return [
        *publishers,
        DeploymentController(context),
        WorkloadController(context, "replicaset", ReplicaSet, ReplicaRules(context)),
        WorkloadController(context, "replication", ReplicationController, ReplicaRules(context)),
        WorkloadController(context, "statefulset", StatefulSet, StatefulSetRules(context)),
        WorkloadController(context, "daemonset", DaemonSet, DaemonSetRules(context)),
        WorkloadController(context, "job", Job, JobRules(context)),
        JobPodRelease(context),
        CronJobController(context),
        PodClaimController(context),
        DeviceClaimRelease(context),
        ClaimBinder(context),
        VolumeBinder(context),
        ClaimProtection(context),
        VolumeProtection(context),
        AttributesClassProtection(context),
        BudgetController(context),
        RoleAggregationController(context),
        NodeLifecycleController(context),
        TaintEvictionController(context),
        DeviceTaintEvictionController(context),
        OrphanedPodController(context),
        NamespaceController(context, discovered),
        ServiceAccountController(context),
        QuotaController(context, discovered),
        GarbageCollector(context, discovered),
    ]
