"""What every room may use: errors, limits, Redis, logs, and reading what people send. It knows no app."""
