/** The API server goes away and comes back: the page says so, and goes on by itself. */
export default async function (play) {
  const { page } = play;
  await play.go("objects/pods");
  await page.getByRole("row", { name: /placed/ }).waitFor();
  await play.ask("stop");
  await page.locator(".error").first().waitFor();
  await page.getByRole("row", { name: /placed/ }).waitFor();
  await play.go("cluster");
  await page.locator(".error").first().waitFor();
  await play.go("objects/nodes");
  await page.locator(".error").first().waitFor();
  await play.ask("start");
  await page.getByRole("row", { name: /node-0/ }).waitFor({ timeout: 40_000 });
  await page.locator(".error").first().waitFor({ state: "detached", timeout: 40_000 });
  await play.go("cluster");
  await page.locator(".heat a").first().waitFor({ timeout: 40_000 });
}
