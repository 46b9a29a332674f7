"""Accounts and their rights: viewers read, operators write, the administrator also manages accounts."""
