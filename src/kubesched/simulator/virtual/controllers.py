"""Runs the controllers of `expansion` on what changed, and carries out what they plan.

A change marks those objects whose controllers care; `sync` lets each of them look once. They act at the instant of the
change, but after the scheduler has done all it could, so that many changes make one look.

Next: `routing`, which says who cares about what.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kubesched.model.apps import ReplicaSet, StatefulSet
from kubesched.model.core import Node, Pod, ReplicationController
from kubesched.model.meta import KubeObject, OwnerReference
from kubesched.model.policy import PodDisruptionBudget, PriorityClass
from kubesched.model.resource import ResourceClaimTemplate
from kubesched.model.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kubesched.model.times import parse_instant
from kubesched.model.workloads import CronJob, DaemonSet, Deployment, Job
from kubesched.simulator.expansion.actions import CreateObject, Plan, UpdateObject
from kubesched.simulator.expansion.admission import AdmissionError, admit_claim, admit_pod
from kubesched.simulator.expansion.budgets import sync_budget
from kubesched.simulator.expansion.cron_jobs import sync_cron_job
from kubesched.simulator.expansion.daemon_sets import sync_daemon_set
from kubesched.simulator.expansion.deployments import sync_deployment
from kubesched.simulator.expansion.job_failures import JobFailures
from kubesched.simulator.expansion.jobs import sync_job
from kubesched.simulator.expansion.names import NameSource
from kubesched.simulator.expansion.object_defaults import with_object_defaults
from kubesched.simulator.expansion.pod_claims import sync_pod_claims
from kubesched.simulator.expansion.replicas import n_wanted, sync_replicas
from kubesched.simulator.expansion.revisions import Revisions
from kubesched.simulator.expansion.stateful_sets import sync_stateful_set
from kubesched.simulator.expansion.volume_claims import StorageState, sync_claim, sync_volume
from kubesched.simulator.virtual.clock import VirtualClock
from kubesched.simulator.virtual.deletion import Deletions
from kubesched.simulator.virtual.routing import concerned
from kubesched.simulator.virtual.store import ClusterStore
