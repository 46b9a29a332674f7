"""Who may do what: viewers read, operators write, the administrator also manages accounts."""
