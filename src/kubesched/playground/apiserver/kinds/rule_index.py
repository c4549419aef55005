"""The rules of all kinds by group, version and kind.

Each area's module has its own; this one only puts them together.
"""

from __future__ import annotations

from kubesched.playground.apiserver.kinds import (
    access_kinds,
    admission_kinds,
    autoscalers,
    batch,
    certificates,
    configuration,
    custom_definitions,
    events,
    further_kinds,
    namespaces,
    nodes,
    quota_kinds,
    scheduling_kinds,
    server_settings,
    services,
    storage_kinds,
    workloads,
)
from kubesched.playground.apiserver.kinds.devices import kinds as device_kinds
from kubesched.playground.apiserver.kinds.pods.rules import POD
from kubesched.playground.apiserver.kinds.serving import KindRules
from kubesched.playground.apiserver.kinds.table_columns import DEFAULT_COLUMNS

_ADMISSION = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"
_STORAGE = "storage.k8s.io/v1"
_ALPHA = "scheduling.k8s.io/v1alpha2"

RULES: dict[tuple[str, str], KindRules] = {
    ("v1", "Pod"): POD,
    ("v1", "Node"): nodes.NODE,
    ("v1", "Namespace"): namespaces.NAMESPACE,
    ("v1", "ConfigMap"): configuration.CONFIG_MAP,
    ("v1", "Secret"): configuration.SECRET,
    ("v1", "Service"): services.SERVICE,
    ("v1", "Endpoints"): services.ENDPOINTS,
    ("v1", "Event"): events.CORE_EVENT,
    ("v1", "LimitRange"): quota_kinds.LIMIT_RANGE,
    ("v1", "PersistentVolume"): storage_kinds.VOLUME,
    ("v1", "PersistentVolumeClaim"): storage_kinds.CLAIM,
    ("v1", "PodTemplate"): further_kinds.POD_TEMPLATE,
    ("v1", "ReplicationController"): workloads.REPLICATION_CONTROLLER,
    ("v1", "ResourceQuota"): quota_kinds.QUOTA,
    ("v1", "ServiceAccount"): access_kinds.SERVICE_ACCOUNT,
    (_ADMISSION, "MutatingAdmissionPolicy"): admission_kinds.MUTATING_POLICY,
    (_ADMISSION, "MutatingAdmissionPolicyBinding"): admission_kinds.MUTATING_BINDING,
    (_ADMISSION, "ValidatingAdmissionPolicy"): admission_kinds.VALIDATING_POLICY,
    (_ADMISSION, "ValidatingAdmissionPolicyBinding"): admission_kinds.VALIDATING_BINDING,
    ("apps/v1", "ControllerRevision"): further_kinds.CONTROLLER_REVISION,
    ("apps/v1", "DaemonSet"): workloads.DAEMON_SET,
    ("apps/v1", "Deployment"): workloads.DEPLOYMENT,
    ("apps/v1", "ReplicaSet"): workloads.REPLICA_SET,
    ("apps/v1", "StatefulSet"): workloads.STATEFUL_SET,
    ("autoscaling/v1", "HorizontalPodAutoscaler"): autoscalers.OLD_AUTOSCALER,
    ("autoscaling/v2", "HorizontalPodAutoscaler"): autoscalers.AUTOSCALER,
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): custom_definitions.DEFINITION,
    ("batch/v1", "CronJob"): batch.CRON_JOB,
    ("batch/v1", "Job"): batch.JOB,
    ("certificates.k8s.io/v1", "CertificateSigningRequest"): certificates.REQUEST,
    ("coordination.k8s.io/v1", "Lease"): configuration.LEASE,
    ("discovery.k8s.io/v1", "EndpointSlice"): services.ENDPOINT_SLICE,
    ("events.k8s.io/v1", "Event"): events.NEW_EVENT,
    ("flowcontrol.apiserver.k8s.io/v1", "FlowSchema"): server_settings.FLOW_SCHEMA,
    ("flowcontrol.apiserver.k8s.io/v1", "PriorityLevelConfiguration"): server_settings.PRIORITY_LEVEL,
    (_ADMISSION, "MutatingWebhookConfiguration"): server_settings.MUTATING_WEBHOOKS,
    (_ADMISSION, "ValidatingWebhookConfiguration"): server_settings.VALIDATING_WEBHOOKS,
    ("networking.k8s.io/v1", "IPAddress"): server_settings.ADDRESS,
    ("networking.k8s.io/v1", "ServiceCIDR"): server_settings.ADDRESS_RANGE,
    ("networking.k8s.io/v1", "Ingress"): further_kinds.INGRESS,
    ("networking.k8s.io/v1", "IngressClass"): further_kinds.INGRESS_CLASS,
    ("networking.k8s.io/v1", "NetworkPolicy"): further_kinds.NETWORK_POLICY,
    ("node.k8s.io/v1", "RuntimeClass"): scheduling_kinds.RUNTIME_CLASS,
    ("policy/v1", "PodDisruptionBudget"): scheduling_kinds.BUDGET,
    (_RBAC, "ClusterRole"): access_kinds.CLUSTER_ROLE,
    (_RBAC, "ClusterRoleBinding"): access_kinds.CLUSTER_ROLE_BINDING,
    (_RBAC, "Role"): access_kinds.ROLE,
    (_RBAC, "RoleBinding"): access_kinds.ROLE_BINDING,
    ("resource.k8s.io/v1", "DeviceClass"): device_kinds.DEVICE_CLASS,
    ("resource.k8s.io/v1", "ResourceClaim"): device_kinds.RESOURCE_CLAIM,
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): device_kinds.RESOURCE_CLAIM_TEMPLATE,
    ("resource.k8s.io/v1", "ResourceSlice"): device_kinds.RESOURCE_SLICE,
    ("resource.k8s.io/v1beta2", "DeviceTaintRule"): device_kinds.DEVICE_TAINT_RULE,
    ("scheduling.k8s.io/v1", "PriorityClass"): scheduling_kinds.PRIORITY_CLASS,
    (_ALPHA, "PodGroup"): scheduling_kinds.POD_GROUP,
    (_ALPHA, "Workload"): scheduling_kinds.WORKLOAD,
    (_STORAGE, "CSIDriver"): storage_kinds.CSI_DRIVER,
    (_STORAGE, "CSINode"): storage_kinds.CSI_NODE,
    (_STORAGE, "CSIStorageCapacity"): storage_kinds.CSI_CAPACITY,
    (_STORAGE, "StorageClass"): storage_kinds.STORAGE_CLASS,
    (_STORAGE, "VolumeAttachment"): storage_kinds.VOLUME_ATTACHMENT,
    (_STORAGE, "VolumeAttributesClass"): storage_kinds.ATTRIBUTES_CLASS,
}

WITHOUT_OWN_RULES = KindRules(columns=DEFAULT_COLUMNS)
