/** The session ends while the page is open: it says so. */
export default async function (play) {
  const { page } = play;
  await play.go("cluster");
  await page.locator(".heat a").first().waitFor();
  await play.context.clearCookies();
  await play.go("objects/configmaps");
  await page.getByText("Open the address").first().waitFor();
}
