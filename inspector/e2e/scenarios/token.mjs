/** The token leaves the address bar, is in no Referer, and opens one session. */
import assert from "node:assert/strict";

export default async function (play) {
  const { page, settings } = play;
  const token = new URL(settings.address).searchParams.get("token");
  assert.equal(page.url().includes("token"), false);
  await play.go("objects/pods");
  await page.locator(".row a").first().waitFor();
  const loaded = play.requests.filter((each) => !each.url.includes("token="));
  assert.ok(loaded.length > 5);
  for (const each of loaded) assert.equal(each.url.includes(token) || each.referer.includes(token), false, each.url);
  assert.equal(await page.evaluate(() => document.cookie), "");
  assert.equal(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }])).then((text) => text.includes(token)), false);
  await page.goBack();
  await page.goBack();
  assert.equal(page.url().includes(token), false);

  const stranger = await play.context.browser().newContext();
  const other = await stranger.newPage();
  const answer = await other.goto(settings.address);
  assert.equal(answer.status(), 403);
  assert.match(await answer.text(), /was used before/);
  assert.equal((await other.goto(`${play.origin}/`)).status(), 401);
  await stranger.close();

  await play.context.clearCookies();
  await page.goto(`${play.origin}/#/cluster`);
  await page.reload();
  await page.getByText("Open the address with a token that the terminal shows.").waitFor();
}
