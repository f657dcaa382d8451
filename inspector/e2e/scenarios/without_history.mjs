/** Servers that record nothing, or have no history: the page says plainly what there is. */
export default async function (play) {
  const { page } = play;
  await play.go("time/configmaps");
  await page.getByText("This server records no times and no users of writes").waitFor();
  await page.locator(".writes tbody tr").first().waitFor();
  await page.route("**/k8s/debug/**", (route) => route.fulfill({ status: 404, body: "404 page not found" }));
  await play.go("time/secrets");
  await page.getByText("This server keeps no history that can be read").waitFor();
}
