/** A modal dialog: the rest of the page waits, Escape closes it, and the focus returns to where it was. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export interface DialogProps {
  readonly label: string;
  readonly role?: "dialog" | "alertdialog";
  readonly close: () => void;
  readonly children: ComponentChildren;
}

export function Dialog({ label, role = "dialog", close, children }: DialogProps) {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const shown = element.current;
    shown?.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={element} class="dialog" role={role} aria-label={label} onClose={close}>
      {children}
    </dialog>
  );
}
