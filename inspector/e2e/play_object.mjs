/** The page in a scenario: steps of a user, requests of a script, and what must never happen. */
import assert from "node:assert/strict";

const TIMEOUT = 15_000;

export class Play {
  /** Open the address with the token. */
  static async start(context, settings, nextLine) {
    context.setDefaultTimeout(TIMEOUT);
    const page = await context.newPage();
    const play = new Play(context, page, settings, nextLine);
    play.watch(page);
    await page.goto(settings.address);
    await page.waitForURL((url) => !url.search.includes("token"));
    await page.getByRole("navigation", { name: "Views" }).waitFor();
    return play;
  }

  constructor(context, page, settings, nextLine) {
    this.context = context;
    this.page = page;
    this.settings = settings;
    this.nextLine = nextLine;
    this.origin = new URL(settings.address).origin;
    this.faults = [];
    this.requests = [];
  }

  watch(page) {
    page.on("pageerror", (error) => this.faults.push(`error of a script: ${error.message}`));
    page.on("dialog", (dialog) => {
      this.faults.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("console", (message) => {
      const expected = /^Failed to load resource: (the server responded with a status of|net::ERR_CONNECTION_REFUSED)|WebSocket connection to/;
      if (message.type() === "error" && !expected.test(message.text())) this.faults.push(`console: ${message.text()}`);
    });
    page.on("request", (request) => {
      this.requests.push({ url: request.url(), referer: request.headers().referer ?? "" });
      if (!request.url().startsWith(this.origin) && !request.url().startsWith("data:")) this.faults.push(`request to elsewhere: ${request.url()}`);
    });
    page.on("popup", () => this.faults.push("a window was opened"));
  }

  check() {
    assert.deepEqual(this.faults, []);
  }

  /** Go to an address of the page, such as `objects/pods`. */
  async go(address) {
    await this.page.evaluate((hash) => (location.hash = hash), `#/${address}`);
  }

  async hash() {
    return this.page.evaluate(() => location.hash);
  }

  /** Send a request to the API server as the page does; fails unless it succeeds. */
  async api(method, path, body, type = "application/json") {
    const { status, text } = await this.page.evaluate(
      async ([method, path, body, type]) => {
        const headers = { "x-steersman-inspector": "1", ...(body === undefined ? {} : { "content-type": type }) };
        const answer = await fetch(`/k8s${path}`, { method, headers, body: body === undefined ? null : JSON.stringify(body) });
        return { status: answer.status, text: await answer.text() };
      },
      [method, path, body, type],
    );
    assert.ok(status < 300, `${method} ${path}: ${status} ${text.slice(0, 500)}`);
    return JSON.parse(text);
  }

  /** Call `look` until it returns something; fails after the time limit. */
  async until(what, look) {
    const end = Date.now() + TIMEOUT;
    for (;;) {
      const found = await look();
      if (found) return found;
      assert.ok(Date.now() < end, `in vain: ${what}`);
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
  }

  /** Let the test do something: it reads the word, and answers with a line. */
  async ask(word) {
    console.log(JSON.stringify({ ask: word }));
    return JSON.parse(await this.nextLine());
  }
}
