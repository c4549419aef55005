"""The health check `leaderElection`: a leader whose lease expired long ago should have stopped, and is not well.

A copy that does not lead is healthy. The elector may come later than the check: until then it is healthy, too.

Next: `leader_election`.
"""

from __future__ import annotations

from kubesched.k8s.client.leader_election import LeaderElector

TOLERATED_S = 20.0
"""How long after the end of the lease kube-scheduler still calls itself healthy."""


class LeaderElectionHealth:
    """`problem` says what is wrong; it is empty when all is well."""

    name = "leaderElection"

    def __init__(self, elector: LeaderElector | None = None, tolerated_s: float = TOLERATED_S) -> None:
        self.elector = elector
        self._tolerated_s = tolerated_s

    def problem(self) -> str:
        if self.elector is None or self.elector.lease_expired_for_s() <= self._tolerated_s:
            return ""
        return f"failed election to renew leadership on lease {self.elector.describe()}"
