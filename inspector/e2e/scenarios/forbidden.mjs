/** A user with rights in one namespace: each view shows what there is, and says what is refused. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page } = play;
  await play.go("cluster");
  for (const panel of ["Nodes", "Requests", "Events"]) await page.getByRole("region", { name: panel, exact: true }).locator(".error").getByText("forbidden").waitFor();
  assert.equal(await page.getByText("Reading nodes and pods").count(), 0);
  await page.getByText("Your user may not read the whole cluster").waitFor();
  await page.getByLabel("Namespace").fill("theirs");
  await page.getByLabel("Namespace").press("Enter");
  await page.getByRole("region", { name: "Unhealthy" }).getByRole("link", { name: "pod/unplaced" }).waitFor();
  assert.match(await play.hash(), /ns=theirs/);
  await page.getByRole("link", { name: "pods", exact: true }).click();
  await page.getByRole("row", { name: /unplaced/ }).waitFor();
  await play.go("objects/configmaps");
  await page.locator(".error").getByText("forbidden").waitFor();
  await page.getByLabel("Namespace").fill("theirs");
  await page.getByLabel("Namespace").press("Enter");
  await page.getByRole("row", { name: /readable/ }).waitFor();
  await page.getByRole("link", { name: "readable" }).click();
  await page.getByRole("row", { name: /color: red/ }).waitFor();
  await play.go("objects/secrets?ns=theirs");
  await page.locator(".error").getByText("forbidden").waitFor();
  await play.go("requests");
  await page.getByText("Your user may not read /debug/requests.").waitFor();
  await play.go("time/configmaps/theirs/readable");
  await page.getByText("Your user may not read this history").waitFor();
  await play.go("why/configmaps/theirs/readable");
  await page.locator(".answer .summary, .answer .error").first().waitFor();
}
