"""Who asks, and may they: answered by certificates, by trusted proxies, and by the API server, as in kube-scheduler.

`authentication` says who, `authorization` whether; `filters` puts both before every page.

Next: `authentication`.
"""
