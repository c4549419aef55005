"""What an API server does with the effects of a scheduler, on typed objects in memory.

`store` keeps the objects, `interpreter` carries effects out on them.
The simulator, the benchmark, the fault simulation and test worlds all stand on it; they add latency, faults and
ledgers. It answers as `kubesched.framework.effects` says, in the words of kube-apiserver, and a test holds it to what
`kubesched.live.writes` makes of the same effects. Admission is not done here: who brings an object has admitted it.
"""
