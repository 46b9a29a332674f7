"""Set up and supervise what `./loom` starts. Standard library only: it runs before anything is installed."""
