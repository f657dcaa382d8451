/** A server whose answers have other shapes than promised: each view says so, or shows what it can. */
import assert from "node:assert/strict";

const ADDRESSES = [
  "cluster",
  "objects/pods",
  "objects/pods/default/x",
  "objects/pods/default/x?tab=edit",
  "objects/pods?at=4",
  "why/pods/default/x",
  "why",
  "requests",
  "requests/abcd",
  "requests?tab=agents",
  "time/pods",
  "time/pods/default/x",
  "time/pods?from=1",
];
const TOLD = "console: The server's answer is not understood";

export default async function (play) {
  const { page } = play;
  for (const address of ADDRESSES) {
    await play.go(address);
    await page.waitForTimeout(300);
    assert.ok((await page.locator("main").innerText()).trim(), `nothing is shown at ${address}`);
    const others = play.faults.filter((each) => !each.startsWith(TOLD));
    assert.deepEqual(others, [], address);
    play.faults.length = 0;
  }
  await play.go("no-such-view");
  await page.getByText("There is no view no-such-view").waitFor();
}
