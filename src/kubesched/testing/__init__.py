"""For tests, ours and those of plugin authors. Nothing in the product imports this package.

`make` builds manifests, `strategies` invents clusters, `vectors` compares with kube-scheduler's answers.
"""
