/** Times of the page with a large cluster; `nodes` and `pods` are the numbers of objects. Milliseconds, but for `quiet`. */

export const CONTEXT = { viewport: { width: 1280, height: 860 } };
const EVENTS = 15;
const SCROLLS = 60;

export default async function (play) {
  const { page, settings } = play;
  page.setDefaultTimeout(60_000);
  const result = {};
  await page.locator(".heat a").nth(settings.nodes - 1).waitFor();
  await page.reload();
  await page.locator(".heat a").nth(settings.nodes - 1).waitFor();
  result.firstPaint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  result.heatMap = await page.evaluate(() => performance.now());
  await page.evaluate(() => (location.hash = "#/objects/pods"));
  result.firstRows = await timed(page, () => document.querySelectorAll(".virtual-body .row").length > 10);
  result.allRows = await timed(page, (pods) => Number(document.querySelector("h1 + .count")?.textContent?.replaceAll(",", "")) >= pods, settings.pods);

  result.scroll = await page.evaluate(async (count) => {
    const box = document.querySelector(".virtual");
    const frames = [];
    let last = performance.now();
    for (let step = 1; step <= count; step++) {
      box.scrollTop = ((box.scrollHeight - box.clientHeight) * step) / count;
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      const now = performance.now();
      frames.push((now - last) / 2);
      last = now;
    }
    frames.sort((a, b) => a - b);
    return { median: frames[Math.floor(count / 2)], worst: frames.at(-1) };
  }, SCROLLS);
  await page.getByLabel("Filter rows").fill("seen-");
  await page.waitForTimeout(1000);
  result.rowAfterCreation = await latencies(page, "pods", ".virtual-body");
  await page.evaluate(() => (location.hash = "#/cluster"));
  await page.locator(".events li").first().waitFor();
  await page.waitForTimeout(2000);
  result.eventAfterCreation = await latencies(page, "events", ".events");
  await page.waitForTimeout(3000);
  result.quiet = {};
  for (const view of ["cluster", "objects/pods", "requests", "time/pods", "why"]) {
    await play.go(view);
    await page.waitForTimeout(3000);
    await play.ask("begin");
    await page.waitForTimeout(settings.seconds * 1000);
    result.quiet[view] = await play.ask("end");
  }
  return result;
}

async function timed(page, look, argument) {
  const began = Date.now();
  await page.waitForFunction(look, argument, { polling: "raf" });
  return Date.now() - began;
}

/** Return the median and the worst time from the request that creates an object to the frame after its text is there. */
async function latencies(page, kind, place) {
  return page.evaluate(
    async ([kind, place, count]) => {
      const found = [];
      for (let number = 0; number < count; number++) {
        const name = `seen-${kind}-${number}`;
        const body = kind === "pods" ? { metadata: { name }, spec: { schedulerName: "none", containers: [{ name: "main", image: "app" }] } } : { metadata: { name }, involvedObject: { kind: "Pod", apiVersion: "v1", namespace: "default", name }, reason: "Seen", message: name, type: "Normal", lastTimestamp: new Date().toISOString() };
        const began = performance.now();
        const shown = new Promise((resolve) => {
          const look = () => (document.querySelector(place)?.textContent?.includes(name) ? requestAnimationFrame(() => resolve(performance.now())) : requestAnimationFrame(look));
          look();
        });
        const answer = await fetch(`/k8s/api/v1/namespaces/default/${kind}`, { method: "POST", headers: { "x-steersman-inspector": "1", "content-type": "application/json" }, body: JSON.stringify(body) });
        if (!answer.ok) throw new Error(await answer.text());
        found.push((await shown) - began);
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      found.sort((a, b) => a - b);
      return { median: found[Math.floor(count / 2)], worst: found.at(-1) };
    },
    [kind, place, EVENTS],
  );
}
