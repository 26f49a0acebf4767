"""The page in headless Chromium: type, send, see text stream and charts move, stop."""

import json
import os
import sys
import threading
import urllib.request

sys.path.insert(0, "infer/serve/testing")
import browser  # noqa: E402
import server_process  # noqa: E402

REPLY = "document.querySelector('#log .turn.assistant:last-child .text').textContent"
FIGURES = "document.querySelector('#log .turn.assistant:last-child .figures').textContent"
CHART = "document.querySelector('#chart-tokens path.series')?.getAttribute('d') ?? ''"


def training_record(step):
    record = {"step": step, "steps": 400, "loss": 2 + 60 / (step + 15), "gradient_norm": 0.7,
              "learning_rate": 0.001, "tokens": step * 4096,
              "tokens_per_second": 21000 + step % 7 * 150, "flops_per_second": 4e10,
              "seconds_left": 30, "time": 1.8e9}
    if step % 50 == 0:
        record.update(eval_loss=2.1 + 60 / (step + 14), eval_bits_per_byte=2.4)
    return json.dumps(record) + "\n"


def write_steps(run, first, last):
    with open(f"{run}/metrics.jsonl", "a") as file:
        file.writelines(training_record(step) for step in range(first, last))


def send(page, text):
    page.evaluate("document.getElementById('prompt').focus()")
    page.type(text)
    page.press("Enter", "\r")


def check_chat(page):
    page.wait_for("document.getElementById('model').textContent === 'tiny'")
    assert page.evaluate("document.activeElement.id") == "prompt", "ready to type"
    before = page.wait_for(CHART)
    page.evaluate("document.getElementById('max_tokens').value = 1500")
    send(page, "who sets the stone?")
    some = page.wait_for(f"{REPLY}.length > 10 && {REPLY}")
    more = page.wait_for(f"{REPLY}.length > {len(some)} && {REPLY}")
    assert more.startswith(some), "a reply only grows"
    page.press("Escape")
    page.wait_for(f"{FIGURES}.includes('stopped')")
    stopped = page.evaluate(REPLY)
    page.wait_for(f"({CHART}) !== {json.dumps(before)}")
    assert page.evaluate(REPLY) == stopped, "nothing comes after a stop"
    assert page.evaluate("document.getElementById('stop').disabled")


def check_completion(page):
    page.evaluate("document.querySelector('input[value=complete]').click()")
    page.evaluate("document.getElementById('max_tokens').value = 60")
    send(page, "The mason sets")
    page.wait_for(f"{FIGURES}.startsWith('60 tokens')")
    assert page.evaluate(REPLY).startswith("The mason sets")
    page.evaluate("document.activeElement.blur()")
    page.press("/", "/", code="Slash")
    assert page.evaluate("document.activeElement.id") == "prompt", "/ comes back to the box"


def check_errors(page):
    page.evaluate("document.getElementById('temperature').value = 9")
    send(page, "x")
    page.wait_for("document.querySelector('#log .error [role=alert]')?.textContent === "
                  "'temperature: expected a number from 0 to 2, got 9'")
    page.evaluate("document.getElementById('temperature').value = 0.8")
    assert page.evaluate("document.getElementById('prompt').value") == "x", "nothing is lost"
    page.evaluate("document.getElementById('prompt').value = ''")


def check_training(page, run):
    page.wait_for("document.getElementById('training-tiles').textContent.includes('200 / 400')")
    assert page.evaluate("document.getElementById('training-note').hidden")
    before = page.evaluate("document.querySelector('#chart-loss path').getAttribute('d')")
    write_steps(run, 201, 260)
    page.wait_for("document.getElementById('training-tiles').textContent.includes('259 / 400')")
    assert page.evaluate("document.querySelector('#chart-loss path').getAttribute('d')") != before
    assert "2.400" in page.evaluate("document.getElementById('training-tiles').textContent")


def background_load(url):
    """Something for the charts to show."""
    body = json.dumps({"prompt": "the", "max_tokens": 1800, "ignore_eos": True}).encode()
    for _ in range(2):
        urllib.request.urlopen(urllib.request.Request(url + "v1/completions", body),
                               timeout=30).read()


def main():
    run = server_process.tiny_run()
    write_steps(run, 1, 201)
    pictures = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", "/tmp")
    with server_process.serving(run, model_name="tiny", metrics_run=run) as server:
        page = browser.Browser(server_process.scratch("profile"))
        try:
            page.open(server.url)
            load = threading.Thread(target=background_load, args=[server.url])
            load.start()
            check_chat(page)
            check_completion(page)
            check_errors(page)
            check_training(page, run)
            load.join()
            for scheme in ("light", "dark"):
                page.screenshot(f"{pictures}/page_{scheme}.png", scheme)
            page.resize(420, 900)
            assert page.evaluate("document.documentElement.scrollWidth") <= 420, "fits a phone"
            page.screenshot(f"{pictures}/page_narrow.png")
            page.evaluate("document.getElementById('clear').click()")
            assert page.evaluate("document.querySelectorAll('#log .turn').length") == 0
        finally:
            page.close()
        assert server.stop() == 0


if __name__ == "__main__":
    main()
