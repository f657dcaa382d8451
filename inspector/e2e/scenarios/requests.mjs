/** A user watches requests, filters them, and reads the steps of one. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page } = play;
  await play.go("requests");
  const rows = page.locator(".row.request:not(.head)");
  await play.until("the stream of requests", async () => {
    await play.api("GET", "/api/v1/namespaces/default/configmaps");
    return (await rows.count()) > 0;
  });
  await page.getByRole("searchbox", { name: "resource" }).fill("configmaps");
  await page.getByRole("searchbox", { name: "resource" }).press("Enter");
  await page.getByRole("searchbox", { name: "verb" }).fill("create");
  await page.getByRole("searchbox", { name: "verb" }).press("Enter");
  assert.match(await play.hash(), /resource=configmaps&verb=create|verb=create&resource=configmaps/);
  let count = 0;
  await play.until("the request", async () => {
    await play.api("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: `traced-${count++}` } });
    return (await rows.count()) > 0;
  });
  for (const text of await rows.allInnerTexts()) assert.match(text, /create\s+configmaps default/);
  await rows.first().getByRole("link").click();
  const steps = page.getByRole("region", { name: "Steps of the request" });
  await steps.getByRole("button", { name: /^admission / }).first().waitFor();
  await steps.getByRole("button", { name: /^authorization/ }).click();
  await steps.getByText("decision", { exact: true }).waitFor();
  await steps.getByRole("link", { name: "Close" }).click();
  await page.getByRole("tab", { name: "By user agent" }).click();
  const agent = page.getByRole("row", { name: /^steersman-inspector/ });
  const writes = (await agent.getByRole("cell").allInnerTexts()).map(Number);
  assert.ok(writes[0] > 0 && writes[2] === writes[0] && writes[5] === 0, `${writes}`);
  await page.getByRole("tab", { name: "Live" }).click();
  await page.getByRole("button", { name: "Pause" }).click();
  const before = await rows.count();
  await play.api("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "unseen" } });
  await page.waitForTimeout(500);
  assert.equal(await rows.count(), before);
  await page.getByRole("button", { name: "Resume" }).click();
}
