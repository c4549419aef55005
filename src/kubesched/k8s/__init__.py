"""What any program for Kubernetes needs; nothing of scheduling."""
