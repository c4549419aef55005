"""`python -m kubesched`: the same as the command `kubesched`."""

from kubesched.cli.main import main

main()
