"""The page at / in a headless Chromium."""

import json
import shutil
import subprocess
import tempfile

from support import NODE, SIM, Left, Server, check

SCRIPT = """
const { chromium } = require("playwright-core");
const [url, executablePath, profile] = process.argv.slice(1);
(async () => {
  const context = await chromium.launchPersistentContext(profile, { executablePath,
    headless: true, args: ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
      "--no-first-run", "--disable-background-networking", "--disable-component-update",
      "--disable-sync", "--disable-dev-shm-usage"] });
  const page = await context.newPage();
  const seen = { problems: [] };
  page.on("console", (m) => {
    if (["error", "warning"].includes(m.type())) seen.problems.push(m.text());
  });
  page.on("pageerror", (e) => seen.problems.push(String(e)));
  page.on("response", (r) => {
    if (r.status() >= 400) seen.problems.push(r.status() + " " + r.url());
  });
  await page.goto(url);
  await page.waitForSelector("#connection[data-state=open]");
  await page.evaluate(() => {
    window.lengths = [0];
    new MutationObserver(() => {
      const length = document.querySelector(".assistant .words")?.textContent.length ?? 0;
      if (length !== window.lengths.at(-1)) window.lengths.push(length);
    }).observe(document.getElementById("talk"), { childList: true, subtree: true });
  });
  await page.fill("#max-tokens", "50");
  await page.fill("#text", "What <b>is</b> this?");
  await page.press("#text", "Enter");
  const words = page.locator(".turn.assistant .words").first();
  await words.waitFor();
  await page.waitForSelector("#stop[disabled]", { state: "attached" });
  seen.lengths = await page.evaluate(() => window.lengths);
  seen.text = await words.textContent();
  seen.question = await page.locator(".turn.user .words").first().textContent();
  seen.figures = await page.locator(".turn.assistant .figures").first().textContent();
  await page.waitForFunction(() => /\\d+ \\/ \\d+/.test(
    document.getElementById("blocks-text").textContent));
  seen.model = await page.textContent("#model");
  console.log(JSON.stringify(seen));
  await context.close();
})().catch((e) => { console.log(JSON.stringify({ failed: String(e) })); process.exit(0); });
"""


@check()
def the_page_shows_a_streamed_answer_its_times_and_no_error():
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        raise Left("no chromium here")
    flags = (*SIM, "--step-time", "30ms", "--num-gpu-blocks-override", "4096")
    with (Server(*flags) as server,
          tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile):
        done = subprocess.run(["node", "-e", SCRIPT, server.url + "/", browser, profile], cwd=NODE,
                              text=True, capture_output=True, timeout=60, check=True)
    seen = json.loads(done.stdout)
    assert "failed" not in seen, seen["failed"]
    assert seen["problems"] == [], seen["problems"]
    assert seen["question"] == "What <b>is</b> this?"
    assert seen["text"].startswith(" This text is a placeholder"), seen["text"]
    # It grew bit by bit.
    assert len(seen["lengths"]) > 3 and seen["lengths"] == sorted(seen["lengths"]), seen["lengths"]
    for part in ("queued", "first token", "tokens/s", "out"):
        assert part in seen["figures"], seen["figures"]
    assert seen["model"] == server.model
