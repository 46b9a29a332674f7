"""Set-up and supervision behind `./loom`: standard library only, as it runs before anything is installed."""
