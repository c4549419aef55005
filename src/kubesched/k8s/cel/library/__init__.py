"""The functions of a selector, one module per family; `environment` puts them together.

The standard ones are those of the CEL specification and of cel-go's extensions, the others are those of Kubernetes.
"""
