"""Which requests are admitted when, and whose rows run together: one file per scheduler."""
