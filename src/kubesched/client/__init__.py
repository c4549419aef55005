"""Any API server: kubeconfig and authentication, REST, informers, leases, events. Knows objects, not scheduling."""
