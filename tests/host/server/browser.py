"""A headless Chromium. Each test gets its own page."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from playwright.sync_api import Browser, Page, TimeoutError, expect, sync_playwright

from tests.host.server.serving import Served

PROGRAM = "/usr/bin/chromium"
# Root can't use the sandbox. The other options prevent connections to the vendor.
OPTIONS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
DESK, PHONE = (1280, 900), (390, 844)
PATIENCE = 45_000  # milliseconds
RELOADS = 5
# Markup that a host sends. If a page runs it, it sets `window.hit`.
CANARY = '<img src=x onerror="window.hit=1">'


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Run the browser."""
    assert os.path.exists(PROGRAM), f"there is no {PROGRAM}: apt-get install chromium"
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=OPTIONS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def paged(browser: Browser, size: tuple[int, int] = DESK, dark: bool = False) -> Iterator[Page]:
    """Give an empty page. At the end, check that no script failed and that no markup of a host ran."""
    context = browser.new_context(
        viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: wrong.append(f"a dialog: {dialog.message}"))
    page.on("console", lambda said: wrong.append(said.text) if "Content Security Policy" in said.text else None)
    try:
        yield page
        assert wrong == []
        assert page.evaluate("window.hit") is None
    finally:
        context.close()


def signed_in(page: Page, served: Served, role: str = "administrator", url: str = "") -> Page:
    """Sign in with the token of a role. Return the page when it is live."""
    happened: list[str] = []
    page.on("request", lambda request: happened.append(f"{request.method} {request.url}"))
    page.on("response", lambda response: happened.append(f"{response.status} {response.url}"))
    page.on("requestfailed", lambda request: happened.append(f"{request.failure} {request.url}"))
    page.on("console", lambda said: happened.append(said.text))
    page.goto(f"{url or served.url}/")
    page.fill("#token", served.tokens[role])
    page.click("text=Sign in")
    try:
        _wait_until_live(page, happened)
    except TimeoutError as error:
        log = "\n".join([*happened, page.inner_text("body")])
        raise AssertionError(f"the page is not live at {page.url}:\n{log}") from error
    return page


def reload(page: Page) -> None:
    """Reload the page. Return when it is live."""
    happened: list[str] = []
    page.on("requestfailed", lambda request: happened.append(f"{request.failure} {request.url}"))
    page.reload()
    _wait_until_live(page, happened)


def _wait_until_live(page: Page, happened: list[str]) -> None:
    """Wait for the live connection. Reload the page if the browser aborted a request.

    Chromium aborts all requests when a network interface appears. Other tests create one for each host.
    """
    for _ in range(RELOADS):
        page.wait_for_selector("#link", state="attached")
        page.wait_for_load_state()
        if not any("ERR_NETWORK_CHANGED" in line for line in happened):
            break
        happened.clear()
        page.reload()
    page.wait_for_selector("#link >> text=live")


def fits(page: Page) -> bool:
    """Return whether the page is no wider than its window."""
    wide: bool = page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    return wide


def go(page: Page, address: str) -> Page:
    """Show a view of the page by its address, such as "#/hosts"."""
    page.evaluate("address => { location.hash = address; }", address)
    return page


def address(page: Page) -> str:
    """Return the address of the current view."""
    found: str = page.evaluate("location.hash")
    return found
