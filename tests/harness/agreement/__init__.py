"""How far kubesched agrees with another scheduler, on a real API server: `make agreement AGREEMENT="KUBECONFIG"`.

The server should be one that nobody else uses, without kubelets and controllers; the scheduler to compare with runs on
it, with its default configuration. Nodes are made, and pods of all kinds that the benchmarks have come and go, while
nodes and labels change; then the cluster is filled to the brim with pods of several priorities, so that most of what
comes has to preempt. Meanwhile `kubesched shadow` and `kubesched record` follow. In the end the recording is replayed
twice.

Read in this order: `pods` (the kinds of pods), `cluster` (nodes, classes, and what changes of them), `stand_ins` (what
kubelets and controllers would do), `workload` (what happens when), `__main__`.
"""
