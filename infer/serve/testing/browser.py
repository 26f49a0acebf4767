"""Drives headless Chromium through its debugging pipe: no package beyond Python's own.

Messages of the Chrome DevTools Protocol are JSON, each ended by a NUL byte; the browser
reads them from descriptor 3 and writes to 4.
"""

import base64
import fcntl
import json
import os
import select
import subprocess
import time


class Browser:
    """One page. Every call has a deadline."""

    def __init__(self, profile, width=1200, height=800):
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        # Out of the way of 3 and 4, which the child's ends become.
        reads, writes = (fcntl.fcntl(fd, fcntl.F_DUPFD, 20) for fd in (to_browser, from_browser))

        def place():
            os.dup2(reads, 3)
            os.dup2(writes, 4)

        self._process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
             "--disable-quic", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--remote-debugging-pipe", f"--user-data-dir={profile}",
             f"--window-size={width},{height}"],
            preexec_fn=place, pass_fds=(3, 4), stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, env={**os.environ, "HOME": profile})
        for fd in (to_browser, from_browser, reads, writes):
            os.close(fd)
        self._buffer, self._next_id, self._session = b"", 0, None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target,
                                  flatten=True)["sessionId"]
        self.call("Page.enable")
        self.resize(width, height)

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)

    def call(self, method, **params):
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 30
        while True:
            reply = self._receive(deadline)
            if reply.get("id") == self._next_id:
                assert "error" not in reply, (method, reply["error"])
                return reply["result"]

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, deadline - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._in, 1 << 16)
            assert data, "the browser ended"
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait_for(self, expression, seconds=10):
        """Until the expression is true; returns its value."""
        deadline = time.monotonic() + seconds
        while True:
            value = self.evaluate(expression)
            if value:
                return value
            assert time.monotonic() < deadline, f"still not true: {expression}"
            time.sleep(0.02)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.wait_for("document.readyState === 'complete'")

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, text=None, **more):
        codes = {"Enter": 13, "Escape": 27, "Tab": 9}
        event = dict(key=key, code=more.pop("code", key),
                     windowsVirtualKeyCode=codes.get(key, ord(key[0].upper())), **more)
        self.call("Input.dispatchKeyEvent", type="keyDown", **event,
                  **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def screenshot(self, path, scheme="light"):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])
        data = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
