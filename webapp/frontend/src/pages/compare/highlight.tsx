/** The runs that are pointed at, in the figure or in the table: the other shows them too. */
import { createContext, type ReactNode, useContext, useMemo, useState } from 'react';

type Ids = readonly number[];

interface Highlight {
  pointed: Ids;
  /** Runs whose marks were chosen: they stay highlighted. */
  pinned: Ids;
  point: (ids: Ids) => void;
  pin: (ids: Ids) => void;
}

const Context = createContext<Highlight>({
  pointed: [],
  pinned: [],
  point: () => undefined,
  pin: () => undefined,
});

/** Only what reads the highlight is drawn again when it changes, not all of `children`. */
export function Highlighting({ children }: { children: ReactNode }) {
  const [pointed, point] = useState<Ids>([]);
  const [pinned, pin] = useState<Ids>([]);
  const value = useMemo(() => ({ pointed, pinned, point, pin }), [pointed, pinned]);
  return <Context value={value}>{children}</Context>;
}

export const useHighlight = () => useContext(Context);

/** What the head of some runs in a table has: it is highlighted with them, and highlights them. */
export function useHighlighted(ids: Ids) {
  const { pointed, pinned, point } = useHighlight();
  const lit = ids.some((id) => pointed.includes(id) || pinned.includes(id));
  return {
    'data-lit': lit || undefined,
    onMouseEnter: () => point(ids),
    onMouseLeave: () => point([]),
    onFocus: () => point(ids),
    onBlur: () => point([]),
  };
}
