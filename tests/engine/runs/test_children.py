"""How device processes end, as the run says it."""

import subprocess
import sys

import pytest

from engine.runs.children import ending_of

ENDS = {
    "its process ended with status 3": "raise SystemExit(3)",
    "its process was ended by SIGSEGV": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "its process was ended by signal 35": "import os; os.kill(os.getpid(), 35)",
    "its process was ended by SIGKILL": "import os, signal; os.kill(os.getpid(), signal.SIGKILL)",
}


@pytest.mark.parametrize("sentence", ENDS)
def test_the_ending_of_a_process_is_said_and_still_there_for_who_waits_for_it(sentence):
    process = subprocess.Popen([sys.executable, "-c", ENDS[sentence]])
    assert ending_of(process.pid) == sentence
    assert process.wait() != 0
    assert ending_of(process.pid) == "", "nobody's child any more"
