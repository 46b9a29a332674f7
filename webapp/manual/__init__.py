"""The pages of docs/ in the browser, below /docs/."""
