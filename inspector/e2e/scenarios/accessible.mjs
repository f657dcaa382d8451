/** Each view, light and dark, passes the checks of axe-core. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { VIEWS } from "./views.mjs";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export default async function (play) {
  const { page } = play;
  const found = [];
  const violations = async (name) => {
    const result = await page.evaluate(() => globalThis.axe.run(document));
    for (const each of result.violations) found.push(`${name}: ${each.id} ${each.nodes.slice(0, 3).map((node) => `${node.target} (${node.failureSummary?.split("\n")[1]?.trim()})`).join(", ")}`);
  };
  await page.evaluate(AXE); // not by a script element: the page's policy refuses it
  for (const scheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme: scheme, reducedMotion: "reduce" });
    for (const [name, { address, ready }] of Object.entries(VIEWS)) {
      await play.go(address);
      await page.locator(ready).first().waitFor();
      await violations(`${name}, ${scheme}`);
    }
    await play.go("cluster");
    await page.getByRole("button", { name: "Keyboard help" }).click();
    await violations(`help, ${scheme}`);
    await page.keyboard.press("Escape");
    await play.go("objects/pods/default/placed");
    await page.getByRole("button", { name: "Delete" }).click();
    await violations(`delete, ${scheme}`);
    await page.getByRole("button", { name: "Cancel" }).click();
  }
  assert.deepEqual(found, []);
}
