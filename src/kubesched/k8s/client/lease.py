"""A coordination.k8s.io/v1 Lease as a lock: read it, create it, update what was last seen of it.

`LeaseLock` guarantees that an update only succeeds if the Lease has not been written since we last read or wrote it: it
always sends the resourceVersion that it knows, and the server refuses it when that is old. Labels, annotations and
whatever else is in the metadata are sent back as they came.

Next: `leader_election`, which decides what to write.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from kubesched.k8s.client.errors import AnswerLost, ApiError, ClientConfigError, Unreachable
from kubesched.k8s.client.requester import Requester
from kubesched.k8s.model.meta import KubeStruct, ObjectMeta
from kubesched.k8s.model.storage import ObjectReference

LEASE_API_VERSION = "coordination.k8s.io/v1"

LOCK_ERRORS = (ApiError, Unreachable, AnswerLost, ClientConfigError, msgspec.DecodeError)
"""What can come of an operation on the lock. Only an `ApiError` and `Unreachable` say that nothing was written."""


class LeaseSpec(KubeStruct, frozen=True):
    """Who holds the lease, and since when. Times are text: they are shown and compared for change, never reckoned."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None

    @property
    def holder(self) -> str:
        return self.holder_identity or ""

    @property
    def duration_s(self) -> int:
        return self.lease_duration_seconds or 0

    @property
    def transitions(self) -> int:
        return self.lease_transitions or 0


class _LeaseAnswer(KubeStruct, frozen=True):
    metadata: msgspec.Raw
    spec: LeaseSpec = LeaseSpec()


class _LeaseBody(KubeStruct, frozen=True, omit_defaults=False):
    metadata: ObjectMeta | msgspec.Raw
    spec: LeaseSpec
    api_version: str = LEASE_API_VERSION
    kind: str = "Lease"


class LeaseLock:
    """One Lease object, and our name on it."""

    def __init__(
        self,
        requests: Requester,
        identity: str,
        *,
        namespace: str = "kube-system",
        name: str = "kube-scheduler",
        timeout_s: float = 5.0,
    ) -> None:
        if not identity:
            raise ValueError("Lock identity is empty")
        self.identity = identity
        self._requests = requests
        self._namespace = namespace
        self._name = name
        self._timeout_s = timeout_s
        self._all = f"/apis/{LEASE_API_VERSION}/namespaces/{namespace}/leases"
        self._one = f"{self._all}/{name}"
        self._metadata = msgspec.Raw()
        self._is_known = False

    def describe(self) -> str:
        return f"{self._namespace}/{self._name}"

    async def get(self) -> LeaseSpec | None:
        """What the Lease says now; None when there is none."""
        try:
            answer = await self._requests.request("GET", self._one, timeout_s=self._timeout_s)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        return self._keep(answer)

    async def create(self, spec: LeaseSpec) -> None:
        metadata = ObjectMeta(name=self._name, namespace=self._namespace)
        body = msgspec.json.encode(_LeaseBody(metadata, spec))
        self._keep(await self._requests.request("POST", self._all, body=body, timeout_s=self._timeout_s))

    async def update(self, spec: LeaseSpec) -> None:
        """Replaces what we last read or wrote."""
        if not self._is_known:
            raise LookupError("lease not initialized, call get or create first")
        body = msgspec.json.encode(_LeaseBody(self._metadata, spec))
        self._keep(await self._requests.request("PUT", self._one, body=body, timeout_s=self._timeout_s))

    def reference(self) -> ObjectReference:
        """The Lease, for an event about it."""
        metadata = msgspec.json.decode(self._metadata, type=ObjectMeta) if self._is_known else ObjectMeta()
        return ObjectReference(
            kind="Lease",
            namespace=self._namespace,
            name=self._name,
            uid=metadata.uid,
            api_version=LEASE_API_VERSION,
            resource_version=metadata.resource_version,
        )

    def _keep(self, answer: bytes) -> LeaseSpec:
        lease = msgspec.json.decode(answer, type=_LeaseAnswer)
        self._metadata = lease.metadata.copy()
        self._is_known = True
        return lease.spec


def print_micro_time(at_s: float) -> str:
    """An instant as Kubernetes' MicroTime writes it."""
    second, microsecond = divmod(round(at_s * 1e6), 1_000_000)
    return f"{_print_second(second)}.{microsecond:06d}Z"


@lru_cache(maxsize=16)
def _print_second(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")
