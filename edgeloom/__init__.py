"""The command line of an installed EdgeLoom: `edgeloom predict …` does what `./loom predict …` does."""
