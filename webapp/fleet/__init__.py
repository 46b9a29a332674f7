"""The machines of one EdgeLoom: what each worker announces, what a run needs, and who may work."""
