"""The live shell: informers tell the loop what is, the loop's effects become writes; leader election and serving."""
