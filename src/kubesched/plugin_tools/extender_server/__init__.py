"""Python plugins for a stock kube-scheduler: an HTTP extender that asks the plugins instead of kube-scheduler.

    kube-scheduler ──POST filter, prioritize, preempt, bind──▶ routes ──▶ verdicts, binding ──▶ plugins
                                                                             ▲
                                           API server ──list, watch──▶ following (nodes, pods, everything else)

`requests` reads what kube-scheduler sends and `answers` writes what it reads: the other ends of
`kubesched.scheduler.engine.extender.wire`. `outside_profiles` says which plugins run, `node_scope` on which nodes.
`snippet` is the part of a KubeSchedulerConfiguration that makes kube-scheduler call here.

Next: `verdicts`, where the plugins are asked.
"""
