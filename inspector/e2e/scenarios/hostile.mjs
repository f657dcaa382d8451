/** Names, annotations and messages that are HTML, scripts, addresses, or a megabyte long are shown as text. */
import assert from "node:assert/strict";

const HTML = `<img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)><a href="javascript:alert(4)">x</a>`;
const ELSEWHERE = "http://elsewhere.example/?";

export default async function (play) {
  const { page } = play;
  const annotations = { "example.com/html": HTML, "example.com/link": "javascript:alert(5)", "example.com/image": `![x](${ELSEWHERE})`, "example.com/control": "\u202e\u0007\u001b[31m", "example.com/large": "x".repeat(250_000) };
  await play.api("POST", "/api/v1/namespaces/default/configmaps", { metadata: { name: "hostile", annotations, labels: { a: "b" }, finalizers: ["example.com/a"] }, data: { [`x${"y".repeat(200)}`]: HTML, large: `${HTML}\n`.repeat(6000) } });
  await play.api("POST", "/api/v1/namespaces/default/events", {
    metadata: { name: "hostile" },
    involvedObject: { apiVersion: "v1", kind: HTML, namespace: "default", name: `../../${HTML}` },
    reason: HTML,
    message: `${HTML} ${"z".repeat(700)}`,
    type: "Warning",
    lastTimestamp: new Date().toISOString(),
  });
  await play.api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
    metadata: { name: "hostiles.example.com" },
    spec: {
      group: "example.com",
      names: { plural: "hostiles", singular: "hostile", kind: "Hostile", listKind: "HostileList" },
      scope: "Namespaced",
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", "x-kubernetes-preserve-unknown-fields": true } },
          additionalPrinterColumns: [{ name: HTML, type: "string", jsonPath: ".text" }, { name: "Link", type: "string", jsonPath: ".link" }],
        },
      ],
    },
  });
  await play.until("the new kind", async () => (await play.api("GET", "/apis")).groups.some((each) => each.name === "example.com"));
  const own = { apiVersion: "example.com/v1", kind: "Hostile", metadata: { name: "hostile", ownerReferences: [{ apiVersion: "v1", kind: HTML.slice(0, 60), name: HTML, uid: "1" }] }, text: HTML, link: "javascript:alert(6)", [HTML]: { __proto__x: 1 }, status: { conditions: [{ type: HTML, status: HTML, reason: HTML, message: HTML }] } };
  await play.until("the object", () => play.api("POST", "/apis/example.com/v1/namespaces/default/hostiles", own).then(() => true, () => false));

  const look = async (address, text) => {
    await play.go(address);
    await page.getByText(text).first().waitFor();
    await page.waitForTimeout(200);
    assert.equal(await page.locator("main img, main script, main iframe, main svg[onload], main [onerror]").count(), 0, address);
    const links = await page.locator("a").evaluateAll((all) => all.map((each) => each.href));
    assert.deepEqual(links.filter((each) => !each.startsWith(`${play.origin}/`)), [], address);
  };
  await look("objects/configmaps/default/hostile", "onerror=alert(1)");
  await look("objects/configmaps/default/hostile?tab=edit", "Dry run");
  await look("cluster", "onerror=alert(1)");
  await page.reload();
  await page.getByRole("navigation", { name: "Kinds" }).or(page.getByRole("region", { name: "Nodes" })).first().waitFor();
  await look("objects/hostiles.example.com", "onerror=alert(1)");
  await look("objects/hostiles.example.com/default/hostile", "onerror=alert(1)");
  await look("time/hostiles.example.com/default/hostile", "created");
  await look("time/configmaps/default/hostile", "created");
  await look(`why/pods/default/${encodeURIComponent(HTML)}`, "onerror=alert(1)");
  await look(`objects/pods/${encodeURIComponent("../../..")}/${encodeURIComponent(HTML)}`, "onerror=alert(1)");
  await look(`objects/${encodeURIComponent(HTML)}`, "onerror=alert(1)");
  await look(encodeURIComponent(HTML), "There is no view");
  await look(`objects/pods?q=${encodeURIComponent(HTML)}&labels=${encodeURIComponent(HTML)}&ns=${encodeURIComponent(HTML)}&sort=${encodeURIComponent(HTML)}`, /unable to parse|invalid|not/i);
  await play.api("GET", `/api/v1/namespaces/default/pods?labelSelector=${encodeURIComponent("a=b")}`);
  await page.evaluate((agent) => fetch(`/k8s/api/v1/namespaces/default/pods/${encodeURIComponent(agent)}`, { headers: { "x-steersman-inspector": "1" } }), HTML);
  await play.go("requests?q=pods");
  await page.locator(".row.request:not(.head)").first().waitFor();
}
