"""Says whether the web server answers: `python -m webapp.ops.health URL` exits 0 if it does."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request


def answers_http(url: str) -> bool:
    """Whether the server answers with a status below 500: 401 before the log-in counts."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=5).close()
    except urllib.error.HTTPError as answer:
        return answer.code < 500
    except OSError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(0 if answers_http(sys.argv[1]) else 1)
