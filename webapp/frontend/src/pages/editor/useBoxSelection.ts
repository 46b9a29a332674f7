import { type PointerEvent, useRef } from 'react';
import { united, withParallels } from './canvasSelection';
import { editor, type Selection } from './editorStore';

const NOTHING: Selection = { nodes: [], links: [] };

/** What a box that is drawn on the canvas selects: what is in it, and with Ctrl (or Shift, where dragging selects
 * anyway) what was selected before. */
export function useBoxSelection() {
  const kept = useRef(NOTHING);
  return {
    onPointerDownCapture: ({ ctrlKey, metaKey, shiftKey }: PointerEvent) => {
      const { selection, boxSelects } = editor();
      kept.current = ctrlKey || metaKey || (shiftKey && boxSelects) ? selection : NOTHING;
    },
    // The canvas itself deselects only what it shows: not the links inside a collapsed group.
    onSelectionStart: () => editor().select(NOTHING),
    onSelectionEnd: () => {
      const { selection, select, history } = editor();
      select(united(kept.current, withParallels(selection, history.present.spec.links)));
    },
  };
}
