/** Keyboard: `g c` goes to a view, `/` to the filter, `?` to the help. */
import { useEffect } from "preact/hooks";
import { formatAddress, go } from "./router";

export const VIEWS = [
  { id: "cluster", name: "Cluster", key: "c" },
  { id: "objects", name: "Objects", key: "o" },
  { id: "why", name: "Why", key: "w" },
  { id: "requests", name: "Requests", key: "r" },
  { id: "time", name: "Time", key: "t" },
] as const;

const PAUSE = 1000;

export function useKeys(help: () => void): void {
  useEffect(() => {
    let pending = 0;
    const pressed = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const target = event.target as HTMLElement;
      if (target.matches("input, textarea, select")) {
        if (event.key === "Escape") target.blur();
        return;
      }
      if (Date.now() - pending < PAUSE) {
        pending = 0;
        const view = VIEWS.find((each) => each.key === event.key);
        if (view) {
          event.preventDefault();
          go(formatAddress([view.id]));
        }
      } else if (event.key === "g") pending = Date.now();
      else if (event.key === "?") help();
      else if (event.key === "/") {
        const filter = document.querySelector<HTMLInputElement>("[data-filter]");
        if (filter) {
          event.preventDefault();
          filter.focus();
          filter.select();
        }
      }
    };
    window.addEventListener("keydown", pressed);
    return () => window.removeEventListener("keydown", pressed);
  }, [help]);
}
