"""A REST client for the election alone: its requests wait behind no others and are not repeated behind our back.

The lease must be renewed in time also when the scheduler has used up its own rate of requests. A try that failed is
repeated by the elector, which knows how much time is left.

Next: `leader_election`.
"""

from __future__ import annotations

from kubesched.k8s.client.election_timing import ElectionTiming
from kubesched.k8s.client.rest import RestClient
from kubesched.k8s.client.retry import RetryPolicy
from kubesched.k8s.client.target import ServerTarget


def make_election_client(target: ServerTarget, timing: ElectionTiming) -> RestClient:
    return RestClient(
        target,
        timeout_s=timing.request_timeout_s,
        user_agent="kubesched/leader-election",
        retries=RetryPolicy(max_attempts=1),
    )
