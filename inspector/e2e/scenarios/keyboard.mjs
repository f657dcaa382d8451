/** A user has a keyboard alone. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page } = play;
  for (const [key, view] of [["o", "objects"], ["w", "why"], ["r", "requests"], ["t", "time"], ["c", "cluster"]]) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await play.until(view, async () => (await play.hash()) === `#/${view}`);
    await page.getByRole("link", { name: view, exact: false, includeHidden: false }).first().waitFor();
  }
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keyboard" }).waitFor({ state: "detached" });

  await play.go("objects/nodes");
  await page.getByRole("row", { name: /node-0/ }).waitFor();
  await page.keyboard.press("/");
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Filter rows");
  await page.keyboard.type("node-");
  await page.keyboard.press("Escape");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  await page.keyboard.press("j");
  assert.match(await page.locator(".row.selected").innerText(), /node-1/);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Node node-1" }).waitFor();
  assert.equal(await play.hash(), "#/objects/nodes/-/node-1");

  await page.reload();
  await page.getByRole("heading", { name: "Node node-1" }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), "Skip to content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
}
