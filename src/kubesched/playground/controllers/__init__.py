"""Controllers, small but real: what makes a cluster of an API server, as clients of it.

    informers ──▶ cluster_view ──▶ work queues ──▶ reconcile ──▶ PlanWriter ──▶ server

The rules by which they reconcile are pure functions: `kubesched.k8s.workloads`.

`runner` starts them all on one set of informers; `controller` says what each has to offer. Begin with `workload`, which
serves everything that makes pods. They are for the playground and for tests: a cluster with a controller manager of its
own needs none of them.
"""
