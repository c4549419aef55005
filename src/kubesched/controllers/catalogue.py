"""All controllers of a playground.

Next: any of the modules named here.
"""

from __future__ import annotations

from kubesched.controllers.budget_controller import BudgetController
from kubesched.controllers.controller import Controller, ControllerContext
from kubesched.controllers.cron_job_controller import CronJobController
from kubesched.controllers.deployment_controller import DeploymentController
from kubesched.controllers.device_claim_release import DeviceClaimRelease
from kubesched.controllers.device_taint_eviction import DeviceTaintEvictionController
from kubesched.controllers.discovered import DiscoveredKinds
from kubesched.controllers.garbage_collector import GarbageCollector
from kubesched.controllers.job_rules import JobPodRelease, JobRules
from kubesched.controllers.namespace_controllers import NamespaceController, ServiceAccountController
from kubesched.controllers.node_lifecycle import NodeLifecycleController
from kubesched.controllers.pod_claim_controller import PodClaimController
from kubesched.controllers.quota_controller import QuotaController
from kubesched.controllers.role_aggregation import RoleAggregationController
from kubesched.controllers.root_ca_publisher import RootCaPublisher
from kubesched.controllers.taint_eviction import OrphanedPodController, TaintEvictionController
from kubesched.controllers.volume_controllers import ClaimBinder, VolumeBinder
from kubesched.controllers.volume_protection import AttributesClassProtection, ClaimProtection, VolumeProtection
from kubesched.controllers.workload import WorkloadController
from kubesched.controllers.workload_kinds import DaemonSetRules, ReplicaRules, StatefulSetRules
from kubesched.model.apps import ReplicaSet, StatefulSet
from kubesched.model.core import ReplicationController
from kubesched.model.workloads import DaemonSet, Job


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
