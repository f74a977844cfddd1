"""The page at / in a real browser: headless Chromium, driven by Selenium."""

import shutil

import pytest
from serving import SOURCE
from test_http import TOKEN, serving

webdriver = pytest.importorskip("selenium.webdriver", reason="needs the extra 'test'")
ui = pytest.importorskip("selenium.webdriver.support.ui")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
WANTED = SOURCE.distances(3)
WAIT = 20

pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER),
    reason="needs Chromium and its driver (Debian: chromium, chromium-driver)",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
        options.add_argument(f"--{word}")
    options.add_argument("--window-size=900,1100")
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1,localhost")
        driver = webdriver.Chrome(options=options, service=service)
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address():
    with serving() as (_, address):
        yield address


def text_of(browser, name):
    return browser.find_element("id", name).text


def wait(browser, condition):
    ui.WebDriverWait(browser, WAIT).until(lambda _: condition())


def give_token(browser, address, token=TOKEN):
    browser.get(address)
    field = browser.find_element("id", "token")
    field.clear()
    field.send_keys(token + "\t")


def test_the_page_asks_for_the_token(browser, address):
    give_token(browser, address, "")
    wait(browser, lambda: "--token-file" in text_of(browser, "help"))
    assert text_of(browser, "help").startswith("Paste the token")
    give_token(browser, address, "wrong")
    wait(browser, lambda: "not the token of the service" in text_of(browser, "help"))
    assert text_of(browser, "state") == "unauthorized"
    assert not browser.find_element("id", "query").is_displayed()


def test_a_query_and_its_histogram(browser, address, tmp_path):
    give_token(browser, address)
    wait(browser, lambda: text_of(browser, "state") == "ready")
    assert not browser.find_element("id", "help").is_displayed()
    assert f"vertices\n{SOURCE.n}" in text_of(browser, "graph")
    source = browser.find_element("id", "source")
    source.clear()
    source.send_keys("3")
    browser.find_element("css selector", "#query button").click()
    reached = int((WANTED >= 0).sum())
    wait(browser, lambda: f'"reached": {reached}' in text_of(browser, "answer"))
    wait(browser, lambda: text_of(browser, "levels"))
    rows = browser.find_elements("css selector", "#levels .row")
    counts = [int(row.text.split()[-1]) for row in rows]
    assert counts == [int((level == WANTED).sum()) for level in range(len(counts))]
    assert sum(counts) == reached
    assert "searches\n1" in text_of(browser, "rates")
    picture = tmp_path / "page.png"
    assert browser.save_screenshot(str(picture))
    assert picture.stat().st_size > 10_000
    assert picture.read_bytes().startswith(b"\x89PNG")
    said = [line["message"] for line in browser.get_log("browser")]
    assert not [line for line in said if "Content Security" in line], said


def test_the_operations_are_shown(browser, address):
    browser.get(f"{address}/docs")
    wait(browser, lambda: "POST /v1/distances" in text_of(browser, "operations"))
    assert "targets" in text_of(browser, "operations")
