/** Streams of the channel as state of components. */
import { useEffect, useRef, useState } from "preact/hooks";
import { channel, type Order } from "./channel";

const PAUSE = 2000;

export interface StreamState {
  readonly ended: { readonly code: number; readonly message: string } | null;
}

/** Takes lines of a stream; `first` is true for the first ones since it was opened, again if it had ended. */
export type Take = (lines: readonly unknown[], first: boolean) => void;

/** Read a stream while the component is shown; it is opened again when it ends. */
export function useStream(order: Order | null, take: Take): StreamState {
  const [ended, setEnded] = useState<StreamState["ended"]>(null);
  const taking = useRef(take);
  taking.current = take;
  const key = order ? JSON.stringify(order) : "";
  useEffect(() => {
    if (!order) return;
    let close: () => void = () => undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const open = () => {
      let first = true;
      close = channel().open(order, {
        lines: (lines) => {
          setEnded(null);
          taking.current(lines, first);
          first = false;
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
