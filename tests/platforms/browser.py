"""Headless Chromium, controlled through its DevTools, to open a page and read it."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from selenium.webdriver.chrome.webdriver import WebDriver

ROOT = Path(__file__).parents[2]
# Without --no-sandbox it does not start as root; the rest keeps it from asking anything of any network by itself.
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    # As on a phone, bars take no room.
    "--hide-scrollbars",
)
WIDE, NARROW, HIGH = 1280, 320, 900
_KEEP_ALERTS = "window.alerted = []; window.alert = text => { window.alerted.push(String(text)); };"


class Browser:
    """One tab. Each `open` shows a file in the given width, colours and medium."""

    def __init__(self, driver: WebDriver) -> None:
        self._driver = driver
        self._shown = ""
        # A dialog would hold up everything that follows; what it would have said is kept instead.
        self._command("Page.addScriptToEvaluateOnNewDocument", source=_KEEP_ALERTS)

    def open(
        self, page: Path, *, width: int = WIDE, height: int = HIGH, dark: bool = False, scripts: bool = True
    ) -> None:
        """Show a file and forget earlier log entries."""
        self._command("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.show_as(width=width, height=height, dark=dark)
        # From a page of its own: a file that differs from the one shown by nothing but its fragment is not loaded.
        self._driver.get("about:blank")
        self.log("performance"), self.log("browser")
        self._shown = page.resolve().as_uri()
        self._driver.get(self._shown)

    def show_as(
        self, *, width: int = WIDE, height: int = HIGH, dark: bool = False, medium: str = "screen"
    ) -> None:
        """Change the size of the window, the reader's colours, or screen to print."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self._command("Emulation.setDeviceMetricsOverride", **metrics)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._command("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def ask(self, script: str, *arguments: Any) -> Any:
        """Return the result of a JavaScript function in the page. It may return a promise."""
        return self._driver.execute_script(script, *arguments)

    def log(self, kind: str) -> list[Mapping[str, Any]]:
        """Return the log entries since the previous call."""
        return list(self._driver.execute("getLog", {"type": kind})["value"])

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, and exceptions that nothing caught."""
        return [str(entry["message"]) for entry in self.log("browser") if entry["level"] in ("WARNING", "SEVERE")]

    def requests(self) -> list[str]:
        """Return every address that the page requested apart from its own, allowed or not."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        sent = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        timed = self.ask("return performance.getEntriesByType('resource').map(entry => entry.name)")
        return sorted({*sent, *timed} - {self._shown})

    def texts(self, selector: str) -> list[str]:
        """Return the visible texts of elements."""
        return list(
            self.ask(
                "return [...document.querySelectorAll(arguments[0])].filter(e => e.checkVisibility())"
                ".map(e => e.innerText.trim())",
                selector,
            )
        )

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a select by its text, as a reader does."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.select import Select

        Select(self._driver.find_element(By.CSS_SELECTOR, selector)).select_by_visible_text(value)

    def click(self, selector: str) -> None:
        """Click on an element."""
        from selenium.webdriver.common.by import By

        found = self._driver.find_element(By.CSS_SELECTOR, selector)
        # Not smoothly: it would be clicked where it no longer is.
        self.ask("arguments[0].scrollIntoView({ behavior: 'instant', block: 'center' });", found)
        found.click()

    def press(self, key: str) -> None:
        """Press a key of the keyboard, by its name, where the focus is."""
        from selenium.webdriver.common.keys import Keys

        self._driver.switch_to.active_element.send_keys(getattr(Keys, key.upper()))

    def picture(self, file: Path, *, whole: bool = True) -> Path:
        """Store the complete page, or the visible part, as a PNG."""
        found = self._command(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, **self._clip(whole)
        )
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(found["data"]))
        return file

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self._command("Page.getLayoutMetrics")["cssContentSize"]
        return {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}

    def printed(self) -> bytes:
        """The page as a PDF."""
        return base64.b64decode(self._command("Page.printToPDF", printBackground=True)["data"])

    def _command(self, name: str, **parameters: Any) -> Any:
        return self._driver.execute_cdp_cmd(name, parameters)


def programs() -> Sequence[str]:
    """The paths of Chromium and of its driver."""
    found = subprocess.run([ROOT / "scripts" / "chromium.sh"], stdout=subprocess.PIPE, text=True, check=True)
    return found.stdout.splitlines()


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """Start a browser with a new profile in a folder, and end it afterwards."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = programs()
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # Told where both are, selenium looks for neither, and fetches nothing.
    service = Service(executable_path=driver, log_output=str(folder / "chromedriver.log"))
    started = webdriver.Chrome(options=options, service=service)
    started.set_script_timeout(60)
    try:
        yield Browser(started)
    finally:
        started.quit()
