/** The page: its frame, and the view of the address. */
import "uplot/dist/uPlot.min.css";
import "./styles.css";
import { Component, render, type ComponentChildren } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { ApiError, NOT_UNDERSTOOD, request } from "./api";
import { channel, type Connection } from "./channel";
import { discover, type Kind } from "./discovery";
import { cut } from "./format";
import { Dialog } from "./dialog";
import { useKeys, VIEWS } from "./keys";
import { Kinds } from "./kinds";
import { Namespaces } from "./namespaces";
import { RowFollower } from "./rows";
import { formatAddress, useAddress } from "./router";
import { ClusterView } from "./views/cluster";
import { ObjectsView } from "./views/objects";
import { RequestsView } from "./views/requests";
import { TimeView } from "./views/time";
import { WhyView } from "./views/why";

interface Info {
  readonly server: string;
  readonly context: string;
}

const KINDS_EVERY = 60_000;
const THEME = "steersman-theme";

function App() {
  const { parts } = useAddress();
  const view = parts[0] ?? "cluster";
  const [help, setHelp] = useState(false);
  useKeys(useCallback(() => setHelp((shown) => !shown), []));
  const { kinds, error } = useAllKinds();
  const namespaces = useAllNamespaces();
  useEffect(() => {
    const name = VIEWS.find((each) => each.id === view)?.name ?? "Steersman";
    document.title = `${parts.slice(1).reverse().filter((part) => part !== "-")[0] ?? name} – Steersman`;
  }, [parts.join("/")]);
  return (
    <Kinds.Provider value={kinds}>
      <Namespaces.Provider value={namespaces}>
        <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), document.getElementById("main")?.focus())}>
          Skip to content
        </a>
        <Header view={view} help={() => setHelp(!help)} />
        {error && (
          <p class="error banner" role="alert">
            {error}
          </p>
        )}
        {help && <Help close={() => setHelp(false)} />}
        <main id="main" tabIndex={-1}>
          <Boundary>
            {view === "objects" ? <ObjectsView /> : view === "why" ? <WhyView /> : view === "requests" ? <RequestsView /> : view === "time" ? <TimeView /> : view === "cluster" ? <ClusterView /> : <NoView name={view} />}
          </Boundary>
        </main>
      </Namespaces.Provider>
    </Kinds.Provider>
  );
}

/** Shows an error in place of a view that an answer of the server has broken, until another address is opened. */
class Boundary extends Component<{ children: ComponentChildren }, { broken: boolean }> {
  override state = { broken: false };
  private readonly mend = () => this.setState({ broken: false });

  override componentDidCatch(error: unknown): void {
    console.error(NOT_UNDERSTOOD, error);
    this.setState({ broken: true });
  }

  override componentDidMount(): void {
    window.addEventListener("hashchange", this.mend);
  }

  override componentWillUnmount(): void {
    window.removeEventListener("hashchange", this.mend);
  }

  override render() {
    return this.state.broken ? (
      <section class="panel">
        <p class="error">{NOT_UNDERSTOOD}</p>
        <button type="button" onClick={this.mend}>
          Try again
        </button>
      </section>
    ) : (
      this.props.children
    );
  }
}

function Header({ view, help }: { view: string; help: () => void }) {
  const [info, setInfo] = useState<Info | null>(null);
  const [state, setState] = useState<Connection>(channel().state);
  useEffect(() => channel().onState(setState), []);
  useEffect(() => {
    request<Info>("/info").then(setInfo, () => setInfo(null));
  }, []);
  return (
    <header class="top">
      <a class="brand" href="#/cluster">
        <Wheel /> Steersman
      </a>
      <nav aria-label="Views">
        {VIEWS.map((each) => (
          <a key={each.id} href={formatAddress([each.id])} aria-current={view === each.id ? "page" : undefined} title={`g ${each.key}`}>
            {each.name}
          </a>
        ))}
      </nav>
      <span class="info" title={info?.server}>
        {info?.context || info?.server}
      </span>
      {state === "lost" && (
        <span class="badge error" role="status">
          disconnected
        </span>
      )}
      <Theme />
      <button type="button" class="quiet" onClick={help} aria-label="Keyboard help">
        ?
      </button>
    </header>
  );
}

function NoView({ name }: { name: string }) {
  return (
    <section class="panel">
      <h1>Steersman</h1>
      <p class="error">There is no view {cut(name, 200)}.</p>
    </section>
  );
}

function Wheel() {
  return (
    <svg viewBox="0 0 32 32" width="18" height="18" aria-hidden="true">
      <circle cx="16" cy="16" r="9" fill="none" stroke="currentColor" stroke-width="3" />
      <path stroke="currentColor" stroke-width="2.5" stroke-linecap="round" d="M16 2v28M2 16h28M6.1 6.1l19.8 19.8M25.9 6.1 6.1 25.9" />
    </svg>
  );
}

/** The theme: as the system has it, or as chosen here; the choice is kept by the browser. */
function Theme() {
  const [theme, setTheme] = useState(localStorage.getItem(THEME) ?? "system");
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    localStorage.setItem(THEME, theme);
  }, [theme]);
  return (
    <select aria-label="Theme" class="quiet" value={theme} onChange={(event) => setTheme(event.currentTarget.value)}>
      <option value="system">auto</option>
      <option value="light">light</option>
      <option value="dark">dark</option>
    </select>
  );
}

function Help({ close }: { close: () => void }) {
  return (
    <Dialog label="Keyboard" close={close}>
      <dl class="facts">
        {VIEWS.map((each) => (
          <div key={each.id}>
            <dt>
              <kbd>g</kbd> <kbd>{each.key}</kbd>
            </dt>
            <dd>{each.name}</dd>
          </div>
        ))}
        <div>
          <dt>
            <kbd>/</kbd>
          </dt>
          <dd>filter</dd>
        </div>
        <div>
          <dt>
            <kbd>j</kbd> <kbd>k</kbd>, arrows, <kbd>Enter</kbd>
          </dt>
          <dd>move in the table of objects and open a row</dd>
        </div>
        <div>
          <dt>
            <kbd>?</kbd>
          </dt>
          <dd>this help</dd>
        </div>
      </dl>
      <button type="button" onClick={close} autofocus>
        Close
      </button>
    </Dialog>
  );
}

function useAllKinds(): { kinds: readonly Kind[]; error: string } {
  const [kinds, setKinds] = useState<readonly Kind[]>([]);
  const [error, setError] = useState("");
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = async () => {
      try {
        const found = await discover();
        setKinds((before) => (JSON.stringify(before) === JSON.stringify(found) ? before : found));
        setError("");
        timer = setTimeout(() => void read(), KINDS_EVERY);
      } catch (problem) {
        setError(problem instanceof ApiError && problem.code === 401 ? "This session has ended. Open the address that the terminal shows." : String((problem as Error).message));
        timer = setTimeout(() => void read(), 5000);
      }
    };
    void read();
    return () => clearTimeout(timer);
  }, []);
  return { kinds, error };
}

function useAllNamespaces(): readonly string[] {
  const [names, setNames] = useState<readonly string[]>([]);
  useEffect(() => {
    let frame = 0;
    const follower = new RowFollower("/api/v1/namespaces", {}, () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setNames([...follower.store.rows.values()].map((row) => row.metadata.name).sort());
      });
    });
    return () => {
      cancelAnimationFrame(frame);
      follower.stop();
    };
  }, []);
  return names;
}

const place = document.getElementById("app");
if (place) render(<App />, place);
