/** A list of which only the visible rows are elements. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

export interface VirtualProps {
  readonly count: number;
  readonly height: number;
  readonly label: string;
  /** The row that the keyboard has selected, scrolled into view. */
  readonly selected?: number;
  readonly header?: ComponentChildren;
  readonly role?: "grid" | "log";
  readonly row: (index: number, style: { readonly transform: string; readonly height: string }) => ComponentChildren;
}

export function VirtualRows({ count, height, label, selected, header, role = "grid", row }: VirtualProps) {
  const scroller = useRef<HTMLDivElement>(null);
  const [, draw] = useState(0);
  const [virtualizer] = useState(
    () =>
      new Virtualizer<HTMLDivElement, HTMLDivElement>({
        count,
        getScrollElement: () => scroller.current,
        estimateSize: () => height,
        overscan: 12,
        observeElementRect,
        observeElementOffset,
        scrollToFn: elementScroll,
        onChange: () => draw((number) => number + 1),
      }),
  );
  virtualizer.setOptions({ ...virtualizer.options, count, estimateSize: () => height });
  useEffect(() => virtualizer._didMount(), [virtualizer]);
  useLayoutEffect(() => virtualizer._willUpdate());
  useEffect(() => {
    if (selected !== undefined && selected >= 0 && selected < count) virtualizer.scrollToIndex(selected, { align: "auto" });
  }, [selected]);
  return (
    <div class="virtual" ref={scroller} role={role} aria-label={label} aria-rowcount={role === "grid" ? count + 1 : undefined} tabIndex={0}>
      {header}
      <div class="virtual-body" role={role === "grid" ? "rowgroup" : undefined} style={{ height: `${virtualizer.getTotalSize()}px` }}>
        {virtualizer.getVirtualItems().map((item) => row(item.index, { transform: `translateY(${item.start}px)`, height: `${height}px` }))}
      </div>
    </div>
  );
}
