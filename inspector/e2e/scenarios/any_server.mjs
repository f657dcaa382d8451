/** Any API server: each view shows what there is, or says what cannot be shown. Returns what was found, by view. */
const CHOICES = {
  nodes: { address: "cluster", shown: ".heat a", region: "Nodes" },
  rates: { address: "cluster", shown: ".plots", region: "Requests" },
  events: { address: "cluster", shown: ".events li", region: "Events" },
  objects: { address: "objects/configmaps", shown: ".row a" },
  why: { address: "why/namespaces/-/default", shown: ".answer .summary" },
  requests: { address: "requests", shown: ".row.request:not(.head)" },
  time: { address: "time/configmaps", shown: ".writes tbody tr" },
};
const WAITING = /^(Reading|Looking|Waiting)/;
/** Milliseconds after which words without anything else count as all that there is. */
const PATIENCE = 3_000;

export default async function (play) {
  const { page } = play;
  const found = {};
  for (const [name, { address, shown, region }] of Object.entries(CHOICES)) {
    await play.go(address);
    const place = region ? page.getByRole("region", { name: region, exact: true }) : page.locator("main");
    const began = Date.now();
    found[name] = await play.until(name, async () => {
      await play.api("GET", "/api/v1/namespaces/default/configmaps?limit=1");
      const words = (await place.locator(".error, .note, .empty").allInnerTexts()).filter((each) => !WAITING.test(each));
      const shows = (await place.locator(shown).count()) > 0;
      return shows || (words.length > 0 && Date.now() - began > PATIENCE) ? { shows, words: words.join(" ") } : undefined;
    });
  }
  return found;
}
