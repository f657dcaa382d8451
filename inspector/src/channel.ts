/** The WebSocket that carries all streams of the page: watches of the API server, and sources of the front. */
import { isObject, NOT_UNDERSTOOD } from "./api";

export interface Order {
  readonly path?: string;
  readonly accept?: string;
  readonly source?: string;
}

export interface Reader {
  lines(lines: readonly unknown[]): void;
  /** The stream has ended; code 0 if the connection was lost. */
  end(code: number, message: string): void;
}

interface Message {
  readonly id: number;
  readonly lines?: readonly unknown[];
  readonly end?: { readonly code: number; readonly message: string };
}

export type Connection = "connecting" | "open" | "lost";

const LONGEST_PAUSE = 10_000;

export class Channel {
  private socket: WebSocket | null = null;
  private next = 1;
  private pause = 250;
  private readonly streams = new Map<number, { order: Order; reader: Reader }>();
  private readonly listeners = new Set<(state: Connection) => void>();
  state: Connection = "connecting";

  constructor(private readonly url: string) {}

  connect(): void {
    this.change("connecting");
    const socket = new WebSocket(this.url);
    this.socket = socket;
    socket.onopen = () => {
      this.pause = 250;
      this.change("open");
      for (const [id, { order }] of this.streams) this.send({ op: "open", id, ...order });
    };
    socket.onmessage = (event: MessageEvent<string>) => this.receive(JSON.parse(event.data) as Message);
    socket.onclose = () => this.lost();
  }

  /** Open a stream; the returned function closes it. */
  open(order: Order, reader: Reader): () => void {
    const id = this.next++;
    this.streams.set(id, { order, reader });
    if (this.state === "open") this.send({ op: "open", id, ...order });
    return () => {
      if (this.streams.delete(id) && this.state === "open") this.send({ op: "close", id });
    };
  }

  onState(listener: (state: Connection) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private receive(message: Message): void {
    const stream = this.streams.get(message.id);
    if (!stream) return;
    if (message.lines) {
      try {
        stream.reader.lines(message.lines.filter(isObject));
      } catch (error) {
        console.error(NOT_UNDERSTOOD, error);
        this.streams.delete(message.id);
        this.send({ op: "close", id: message.id });
        stream.reader.end(502, NOT_UNDERSTOOD);
        return;
      }
    }
    if (message.end) {
      this.streams.delete(message.id);
      stream.reader.end(message.end.code, message.end.message);
    }
  }

  private lost(): void {
    this.change("lost");
    const ended = [...this.streams.values()];
    this.streams.clear();
    setTimeout(() => this.connect(), this.pause);
    this.pause = Math.min(this.pause * 2, LONGEST_PAUSE);
    for (const { reader } of ended) reader.end(0, "the connection to steersman inspect was lost");
  }

  private send(message: object): void {
    this.socket?.send(JSON.stringify(message));
  }

  private change(state: Connection): void {
    this.state = state;
    for (const each of this.listeners) each(state);
  }
}

let shared: Channel | null = null;

/** The channel of this page, connected by its first use. */
export function channel(): Channel {
  if (!shared) {
    shared = new Channel(`ws://${location.host}/channel`);
    shared.connect();
  }
  return shared;
}
