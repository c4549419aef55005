"""`kubesched consolidate`: which nodes can go, in which order, and what takes their place.

Every removal is tried by the scheduler before it counts: the node is cordoned and its pods are evicted as disruption
budgets allow; all of them must find a node while it is still there, as a topology domain; then it is deleted.

Read `consolidation` first; then

- `rules` for what keeps a pod, and so its node, where it is, with the names that kubectl, Karpenter and Cluster
  Autoscaler have for it, and for how many pods may leave at a time;
- `removal` for one attempt, `replacements` for the machines that could take a node's place;
- `karpenter_pools` for what NodePools allow, `rounds` for steps that go together;
- `state` for the cluster as it changes step by step, `policies` for ours and those of Karpenter and Cluster Autoscaler;
- `dry_run` for a single node, `report` for the answer.
"""
