/** Takes the pictures of the guide: `inspect-VIEW.png`, in the light theme. `revisions` are two revisions of the Deployment shop. */
export const CONTEXT = { viewport: { width: 1200, height: 720 }, colorScheme: "light" };

/** Seconds for which figures are collected. */
const FIGURES = 28;

export default async function (play) {
  const { page, settings } = play;
  const [from, to] = settings.revisions;
  const take = async (name) => {
    await page.waitForTimeout(500);
    await page.screenshot({ path: `${settings.folder}/inspect-${name}.png`, animations: "disabled" });
  };
  await play.go("requests");
  await page.locator(".row.request:not(.head)").first().waitFor();
  await play.go("cluster");
  await page.locator(".heat a").nth(settings.nodes - 1).waitFor();
  await page.locator(".unhealthy li").first().waitFor();
  for (let round = 0; round < FIGURES; round++) {
    for (let number = 0; number < 12; number++) await play.api("GET", "/api/v1/pods?limit=20");
    await page.waitForTimeout(1000);
  }
  await take("cluster");
  await play.go("objects/deployments.apps/default/shop");
  await page.getByRole("link", { name: /^replicaset\/shop-/ }).first().waitFor();
  await page.locator(".yaml tr").first().waitFor();
  await take("objects");
  await play.go("why/pods/default/trainer");
  await page.locator(".figures").first().waitFor();
  await take("why");
  await play.go("requests?resource=configmaps&verb=create");
  const rows = page.locator(".row.request:not(.head)");
  let number = 0;
  await play.until("a request", async () => {
    await play.api("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: `settings-${number++}` } });
    return (await rows.count()) > 2;
  });
  await rows.first().getByRole("link").click();
  await page.locator(".bars li").first().waitFor();
  await take("requests");
  await play.go(`time/deployments.apps/default/shop?from=${from}&to=${to}`);
  await page.locator(".diff").waitFor();
  await page.locator(".writes tbody tr").first().waitFor();
  await take("time");
}
