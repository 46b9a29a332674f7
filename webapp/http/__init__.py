"""How a request reaches the apps and an answer leaves: the web server, middleware, the page, health."""
