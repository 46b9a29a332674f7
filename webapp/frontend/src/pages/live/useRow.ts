import { useEffect, useRef, type FocusEvent } from 'react';

/**
 * A row of the controls that is chosen by a click or by the keyboard, and brought into view when it is; `focused`
 * rows take the focus, too. A press of a
 * pointer only chooses it once it is released: a row that moved between the two would lose the click.
 */
export function useRow(chosen: boolean, focused: boolean, onChoose: () => void) {
  const ref = useRef<HTMLDivElement>(null);
  const pressed = useRef(false);
  useEffect(() => {
    if (chosen) ref.current?.scrollIntoView({ block: 'nearest' });
  }, [chosen]);
  useEffect(() => {
    if (focused) ref.current?.focus();
  }, [focused]);
  const release = () => {
    pressed.current = false;
  };
  return {
    ref,
    tabIndex: -1,
    onPointerDownCapture: () => {
      pressed.current = true;
      window.addEventListener('pointerup', release, { once: true });
      window.addEventListener('pointercancel', release, { once: true });
    },
    onClick: onChoose,
    onFocus: (event: FocusEvent) => {
      // Focus returns from a dialog outside the row, too: only what lies in the row chooses it.
      if (!pressed.current && ref.current?.contains(event.target)) onChoose();
    },
  };
}
