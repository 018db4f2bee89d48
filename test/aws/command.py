"""Runs Amazon's command, once for each line of arguments: to start it takes a second of processor time, a call
of it some milliseconds. What it prints is told, and what it says of errors."""

import contextlib
import io
import json
import sys

import awscli.clidriver

driver = awscli.clidriver.create_clidriver()
for line in sys.stdin:
    out, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
        code = driver.main(json.loads(line))
    print(json.dumps({"out": out.getvalue(), "errors": errors.getvalue(), "code": code}), flush=True)
