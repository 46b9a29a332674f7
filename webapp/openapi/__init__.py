"""The OpenAPI document, and the command that writes the front end's types from it."""
