/** Addresses of all views, with something to see in each. */
export const VIEWS = {
  cluster: { address: "cluster", ready: ".heat a" },
  objects: { address: "objects/pods", ready: ".row a" },
  object: { address: "objects/pods/default/placed", ready: ".yaml tr" },
  edit: { address: "objects/pods/default/placed?tab=edit", ready: ".editor" },
  past: { address: "objects/pods?at=400", ready: ".past" },
  why: { address: "why", ready: ".unhealthy li" },
  pod: { address: "why/pods/default/too-large", ready: ".figures" },
  requests: { address: "requests", ready: ".row.request:not(.head)" },
  agents: { address: "requests?tab=agents", ready: ".figures tbody tr" },
  time: { address: "time/pods", ready: ".writes tbody tr" },
  comparison: { address: "time/pods?from=1", ready: ".changed li" },
  nothing: { address: "objects/jobs.batch", ready: ".empty" },
  unknown: { address: "objects/no-such-kind", ready: ".error" },
};
