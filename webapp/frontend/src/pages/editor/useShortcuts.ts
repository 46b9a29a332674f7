import { useEffect } from 'react';
import { moveBy } from '@/cluster/drawing';
import { nodesOf } from './canvasSelection';
import type { View } from './command';
import { isAble } from './commands';
import { editor, useEditor } from './editorStore';
import { commandFor } from './shortcutKeys';

const STEP = 8;
const LARGE_STEP = 40;
const ARROWS: Readonly<Record<string, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/** The editor's keyboard: commands, arrows that move, Enter on a focused node or link that selects it. */
export function useShortcuts(view: View) {
  const readOnly = useEditor((state) => state.readOnly);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      const command = commandFor(event);
      const isSave = command?.id === 'save';
      if (event.defaultPrevented || (isBusy(event.target) && !isSave)) return;
      const action = command
        ? isAble(command, readOnly) && (() => command.run(view))
        : (selecting(event) ?? (!readOnly && nudging(event)));
      if (!action && !isSave) return;
      event.preventDefault();
      if (isSave) finishField(event.target);
      if (action) action();
    };
    window.addEventListener('keydown', onKey);
    return () => window.removeEventListener('keydown', onKey);
  }, [readOnly, view]);
}

/** A field reports what was typed when it loses the focus: what is saved has it too. */
function finishField(target: EventTarget | null) {
  if (!(target instanceof HTMLElement) || !isBusy(target)) return;
  target.blur();
  target.focus();
}

/** Moves the selected nodes; presses one after the other are one step to undo. */
function nudging(event: KeyboardEvent): (() => void) | null {
  const arrow = ARROWS[event.key];
  const { selection, edit } = editor();
  if (!arrow || event.ctrlKey || event.metaKey || event.altKey || selection.nodes.length === 0) return null;
  const step = event.shiftKey ? LARGE_STEP : STEP;
  const by = { x: arrow[0] * step, y: arrow[1] * step };
  return () => edit((drawing) => moveBy(drawing, selection.nodes, by), `nudge ${selection.nodes.join()}`);
}

/** Selects the node or link that has the focus; with Shift or Ctrl it is added or taken away. */
function selecting(event: KeyboardEvent): (() => void) | null {
  if ((event.key !== 'Enter' && event.key !== ' ') || !(event.target instanceof Element)) return null;
  const id = event.target.getAttribute('data-id');
  const isNode = event.target.classList.contains('react-flow__node');
  if (!id || !(isNode || event.target.classList.contains('react-flow__edge'))) return null;
  const more = event.shiftKey || event.ctrlKey || event.metaKey;
  return () => {
    const { selection, select, history } = editor();
    const names = isNode ? nodesOf(id, history.present.layout) : [id];
    const part = isNode ? 'nodes' : 'links';
    const has = names.every((name) => selection[part].includes(name));
    const rest = selection[part].filter((name) => !names.includes(name));
    if (!more) select({ nodes: [], links: [], [part]: names });
    else select({ ...selection, [part]: has ? rest : [...rest, ...names] });
  };
}

/** Whether keys belong to a text field, a dialog, a menu or a list. */
export function isBusy(target: EventTarget | null): boolean {
  if (!(target instanceof HTMLElement)) return false;
  return (
    target.isContentEditable ||
    ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName) ||
    target.closest('[role="dialog"], [role="menu"], [role="listbox"]') !== null
  );
}
