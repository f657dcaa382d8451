/** A user looks at the cluster: nodes, what is unhealthy, figures, and an event that happens meanwhile. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page } = play;
  await play.go("cluster");
  const cells = page.locator(".heat a");
  await play.until("all nodes", async () => (await cells.count()) === 3);
  assert.match(await cells.first().getAttribute("title"), /CPU .* of .* requested/);
  await page.getByLabel("Measure").selectOption("pods");
  assert.match(await cells.first().getAttribute("aria-label"), /^node-\d, Pods \d+ %$/);
  assert.match(await play.hash(), /measure=pods/);
  const unhealthy = page.getByRole("region", { name: "Unhealthy" });
  await unhealthy.getByRole("link", { name: "pod/too-large" }).waitFor();
  await page.getByText("Requests per second").waitFor();
  await play.api("POST", "/api/v1/namespaces/default/pods", { metadata: { name: "seen" }, spec: { containers: [{ name: "main", image: "app" }] } });
  const events = page.getByRole("region", { name: "Events" });
  await events.getByText("Successfully assigned default/seen").waitFor();
  await play.api("DELETE", "/api/v1/namespaces/default/pods/seen");
  await page.getByRole("link", { name: /pending$/ }).click();
  await page.getByRole("row", { name: /too-large/ }).waitFor();
  assert.match(await play.hash(), /^#\/objects\/pods\?q=Pending$/);
  await page.goBack();
  await cells.first().click();
  await page.getByRole("heading", { name: "Node node-" }).waitFor();
}
