"""Scenarios for a scheduler on a live API server, any server: they only send requests, and look at what comes of it.

Each scenario makes nodes that nobody else uses, and pods in a namespace of its own that name one scheduler; waits until
they are scheduled; checks where the pods are and what the scheduler wrote about them (events and conditions, as
kube-scheduler v1.36.4 writes them); and takes everything away again.

    make test-cluster KUBECONFIG=~/.kube/config
    python -m harness.live_scenarios --kubeconfig F --scenario plain --nodes 1000 --pods 2000

Read in this order: `site` (what a scenario has), `placement`, `preemption`, `volumes` and `node_comes` (the
scenarios), `checks` and `event_checks` (what must hold), `run` (one scenario from beginning to end).
"""

from harness.live_scenarios.run import SCENARIOS, ScenarioResult, run_scenario
from harness.live_scenarios.site import ScenarioFailedError, ScenarioSize, Site

__all__ = ["SCENARIOS", "ScenarioFailedError", "ScenarioResult", "ScenarioSize", "Site", "run_scenario"]
