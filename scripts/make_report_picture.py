"""Photograph the demo's report for the README: needs the dev extras and a Chromium."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "report.png"
WIDTH, HEIGHT = 1100, 1180


def main() -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        sys.exit("No Chromium on this machine; on Debian: apt-get install chromium")
    PICTURE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        report = Path(folder) / "report.html"
        subprocess.run([sys.executable, "-m", "keyhole", "demo", "--quiet", "--report", report], check=True)
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(report.as_uri())
        page.screenshot(path=PICTURE)
        browser.close()
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
