/** A user asks why a pod is pending, and where a smaller one would go. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page } = play;
  await play.go("why");
  await page.getByRole("region", { name: "Unhealthy" }).getByRole("link", { name: "Why too-large" }).click();
  await page.getByText("Pending, without a node").waitFor();
  const groups = page.getByRole("table", { name: "Nodes that do not take the pod, by reason" });
  assert.match(await groups.innerText(), /3\s+NodeResourcesFit\s+too small: insufficient cpu/);
  await page.getByText("verified").first().waitFor();
  assert.match(await page.getByRole("table", { name: "Last decisions of the scheduler" }).innerText(), /Unschedulable.*\s+0\/3 nodes are available/);
  await page.getByText("Evidence").first().click();
  await page.getByText("FailedScheduling").first().waitFor();

  await page.getByLabel("Name", { exact: true }).fill("placed");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.getByRole("table", { name: /^Scores of the best nodes/ }).waitFor();
  assert.equal(await play.hash(), "#/why/pods/default/placed");

  await page.getByLabel("Name", { exact: true }).fill("nobody");
  await page.getByRole("button", { name: "Explain" }).click();
  await page.locator(".answer .error").waitFor();

  const manifests = page.getByLabel("Manifests");
  await page.getByRole("button", { name: "Try" }).click();
  await page.getByText("1 of 1 pods would get a node.").waitFor();
  await manifests.fill((await manifests.inputValue()).replace("cpu: 500m", "cpu: 500"));
  await page.getByRole("button", { name: "Try" }).click();
  await page.getByText("0 of 1 pods would get a node.").waitFor();
  await page.getByText(/stays pending: .*insufficient cpu/).waitFor();
  await manifests.fill("{");
  await page.getByRole("button", { name: "Try" }).click();
  await page.locator(".what-if [role=alert]").waitFor();
}
