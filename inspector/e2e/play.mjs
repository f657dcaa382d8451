/** Plays one scenario in Chromium: `node play.mjs SCENARIO`, with its settings as a line of JSON on stdin.
 *
 * Settings: `address` (with the token), `chromium`, `folder` (of screenshots), and more by scenario. Prints a line of JSON
 * and exits with 0, or prints the failure and exits with 1. In each scenario the page must stay without errors in its
 * console, without dialogs, and without requests to other servers.
 */
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";
import { Play } from "./play_object.mjs";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const nextLine = async () => (await lines.next()).value ?? "";
const settings = JSON.parse(await nextLine());
const name = process.argv[2] ?? "";
const scenario = await import(`./scenarios/${name}.mjs`);
const browser = await chromium.launch({ executablePath: settings.chromium, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
try {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, locale: "en-GB", timezoneId: "UTC", ...(scenario.CONTEXT ?? {}) });
  const play = await Play.start(context, settings, nextLine);
  try {
    const result = await scenario.default(play);
    play.check();
    console.log(JSON.stringify(result ?? {}));
  } catch (error) {
    await play.page.screenshot({ path: `${settings.folder}/${name}-failed.png` }).catch(() => undefined);
    throw error;
  }
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  process.stdin.destroy();
}
