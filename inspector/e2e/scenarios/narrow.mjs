/** No view is wider than a phone, and each is usable there. */
import assert from "node:assert/strict";
import { VIEWS } from "./views.mjs";

export const CONTEXT = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

export default async function (play) {
  const { page } = play;
  for (const [name, { address, ready }] of Object.entries(VIEWS)) {
    await play.go(address);
    await page.locator(ready).first().waitFor();
    const { width, shown } = await page.evaluate(() => ({ width: document.documentElement.scrollWidth, shown: innerWidth }));
    assert.ok(width <= 390 && shown <= 390, `${name} is ${width} wide, of ${shown}`);
  }
  await play.go("objects/pods");
  await page.getByRole("row", { name: /placed/ }).getByRole("link").tap();
  await page.getByRole("heading", { name: /placed/ }).waitFor();
}
