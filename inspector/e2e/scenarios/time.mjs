/** A user looks at what was written, compares two revisions, and sees the objects of an earlier one. */
import assert from "node:assert/strict";

const PATH = "/api/v1/namespaces/default/configmaps";

export default async function (play) {
  const { page } = play;
  const first = await play.api("POST", PATH, { metadata: { name: "settings" }, data: { color: "red" } });
  const second = await play.api("PATCH", `${PATH}/settings?fieldManager=painter`, { data: { color: "blue" } }, "application/merge-patch+json");
  await play.api("DELETE", `${PATH}/settings`);
  const [before, after] = [first, second].map((each) => each.metadata.resourceVersion);

  await play.go("time/configmaps/default/settings");
  const writes = page.getByRole("region", { name: "Writes" });
  assert.match(await writes.getByRole("row", { name: /patch/ }).innerText(), /kubernetes-admin[\s\S]*painter[\s\S]*\.data\.color: "red" → "blue"/);
  await writes.getByRole("row", { name: /delete/ }).waitFor();

  await page.getByRole("button", { name: `Compare from revision ${before}` }).click();
  const comparison = page.getByRole("region", { name: "Comparison" });
  await comparison.getByText("It did not exist at revision").waitFor();
  await page.getByRole("button", { name: `Look at revision ${after}` }).click();
  await comparison.getByRole("heading", { name: `From revision ${before} to ${after}` }).waitFor();
  await play.until("the difference", async () => /-\s+color: red\n\+\s+color: blue/.test(await comparison.innerText()));
  assert.equal(await play.hash(), `#/time/configmaps/default/settings?from=${before}&to=${after}`);

  const slider = page.getByLabel("Revision: slider");
  assert.equal(await slider.inputValue(), after);
  await slider.focus();
  await slider.press("ArrowLeft");
  await play.until("the slider's revision in the address", async () => (await play.hash()).endsWith(`to=${Number(after) - 1}`));
  await page.getByLabel("Revision: number").fill(after);
  await page.getByLabel("Revision: number").press("Enter");
  await play.until("the number in the address", async () => (await play.hash()).endsWith(`to=${after}`));

  await page.getByLabel("Revision: time").fill("2020-01-01T00:00:00");
  await play.until("the first revision", async () => (await play.hash()).endsWith("to=1"));
  await page.getByLabel("Revision: number").fill(after);
  await page.getByLabel("Revision: number").press("Enter");
  await page.getByRole("link", { name: `configmaps as of revision ${after}` }).click();
  await page.getByText(`As of revision ${after}.`).waitFor();
  await page.getByRole("link", { name: "settings", exact: true }).click();
  await page.getByRole("row", { name: /color: blue/ }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Delete" }).count(), 0);
  await page.getByRole("button", { name: "Back to now" }).click();
  await page.getByText("not found").waitFor();

  await play.go(`time/configmaps?ns=default&from=${before}&to=${after}`);
  await comparison.getByText("default/settings").click();
  await play.until("the difference of one object", async () => /\+\s+color: blue/.test(await comparison.innerText()));
}
