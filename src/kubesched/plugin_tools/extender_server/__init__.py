"""Python plugins for a stock kube-scheduler: an HTTP extender that asks the plugins instead of kube-scheduler.

    kube-scheduler ──POST filter, prioritize, preempt, bind──▶ routes ──▶ verdicts ──▶ plugins
                                                                         ▲
                                  API server ──list, watch──▶ served_cluster (nodes, pods, everything else)

`messages` reads what kube-scheduler sends and writes what it reads: the other end of
`kubesched.scheduler.engine.extender.http_extender`. `outside_profiles` says which plugins run, and has the part of a
KubeSchedulerConfiguration that makes kube-scheduler call here.

Next: `verdicts`, where the plugins are asked.
"""
