/** Streams of the channel as state of components. */
import { useEffect, useRef, useState } from "preact/hooks";
import { channel, type Order } from "./channel";

const PAUSE = 2000;

export interface StreamState {
  readonly ended: { readonly code: number; readonly message: string } | null;
}

/** Read a stream while the component is shown; it is opened again when it ends. `take` gets the lines. */
export function useStream(order: Order | null, take: (lines: readonly unknown[]) => void): StreamState {
  const [ended, setEnded] = useState<StreamState["ended"]>(null);
  const taking = useRef(take);
  taking.current = take;
  const key = order ? JSON.stringify(order) : "";
  useEffect(() => {
    if (!order) return;
    let close: () => void = () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const open = () => {
      close = channel().open(order, {
        lines: (lines) => {
          setEnded(null);
          taking.current(lines);
        },
        end: (code, message) => {
          setEnded({ code, message });
          timer = setTimeout(open, PAUSE);
        },
      });
    };
    open();
    return () => {
      clearTimeout(timer);
      close();
    };
  }, [key]);
  return { ended };
}
