/** A user finds an object, reads who owns its fields, changes it with a dry run and an apply, and deletes it. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page } = play;
  await play.go("objects/deployments.apps");
  await page.getByRole("row", { name: /web/ }).waitFor();
  await page.getByLabel("Filter rows").fill("no such thing");
  await page.getByText("No row matches the filter.").waitFor();
  await page.getByLabel("Filter rows").fill("web");
  await page.getByLabel("Label selector").fill("app=other");
  await page.getByLabel("Label selector").press("Enter");
  await page.getByText("No deployments.").waitFor();
  await page.getByLabel("Label selector").fill("app=web");
  await page.getByLabel("Label selector").press("Enter");
  await page.getByRole("link", { name: "web", exact: true }).click();
  await page.getByRole("link", { name: /^replicaset\/web-/ }).waitFor();
  const fields = page.getByRole("table", { name: "Fields and their owners" });
  assert.match(await fields.getByRole("row", { name: /^replicas: 2/ }).first().innerText(), /the-client/);
  await play.until("the owner of a status field", async () => /kube-controller-manager \(status\)/.test(await fields.getByRole("row", { name: /availableReplicas: 2/ }).first().innerText()));

  await page.getByRole("tab", { name: "Edit" }).click();
  const editor = page.getByLabel("Object as YAML");
  await editor.fill((await editor.inputValue()).replace("replicas: 2", "replicas: 1"));
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("take over fields of other managers").last().waitFor();
  assert.match(await page.getByRole("alert").innerText(), /conflict/i);
  await page.getByLabel("take over fields of other managers").check();
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByText("The dry run would change:").waitFor();
  assert.match(await page.locator(".diff").innerText(), /-\s+replicas: 2\n\+\s+replicas: 1/);
  const unchanged = await play.api("GET", "/apis/apps/v1/namespaces/default/deployments/web");
  assert.equal(unchanged.spec.replicas, 2);
  await page.getByRole("button", { name: "Apply" }).click();
  await page.getByText("Written:").waitFor();
  const changed = await play.api("GET", "/apis/apps/v1/namespaces/default/deployments/web");
  assert.equal(changed.spec.replicas, 1);
  assert.ok(changed.metadata.managedFields.some((each) => each.manager === "steersman-inspector" && each.operation === "Apply"));

  await page.getByRole("tab", { name: "Events" }).click();
  await page.getByText("Scaled down replica set").waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await page.getByText("The object is gone").waitFor();
  await play.go("objects/deployments.apps");
  await page.getByText("No deployments.").waitFor();
}
